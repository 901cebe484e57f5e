"""Read workloads from SQL text: any number of statements, in any dialect that sqlglot reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError

from hedgerow.core.errors import SchemaError, WorkloadError, meant
from hedgerow.core.predicates.nodes import conjunction
from hedgerow.core.predicates.schema import Schema, Session, as_schema
from hedgerow.core.workload import queries as core
from hedgerow.core.workload.queries import Join, Query, Scan
from hedgerow.sql.join_edges import Edge
from hedgerow.sql.open_values import OpenValue, OpenValues
from hedgerow.sql.parse import parse
from hedgerow.sql.pushdown import Pushdown, predicates
from hedgerow.sql.relations import Base, Builder, name_of
from hedgerow.sql.to_sql import to_sql

Schemas = Mapping[str, Any]
Values = Mapping[OpenValue, str]
_NOT_NEWLINE = re.compile(r"[^\n]")
# a node's class and a token's text in sqlglot's error messages
_OBJECT = re.compile(r"<class '[\w.]*?(\w+)'>|<Token token_type: .*?, text: (.*?), line: .*?>", re.DOTALL)


@dataclass(frozen=True, repr=False)
class Workload(core.Workload):
    """A workload that keeps its SQL, so that `bind` can read it again when the schemas are known.

    `schemas` are the schemas known so far; `names` maps table names in the texts to the names that `on` gave them.
    """

    schemas: Schemas = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_sql(
        cls, statements: str | Iterable[str], schemas: Schemas | None = None, dialect: str = "spark"
    ) -> Workload:
        """Read statements; one string may hold several, split by semicolons. Those that cannot be parsed are left out.

        `schemas` maps table names to Arrow schemas or `{"column": "type"}`; without it, names that could mean two
        tables are left out until `bind`.

        >>> w = Workload.from_sql("SELECT * FROM t WHERE x BETWEEN 3 AND 5 AND y LIKE 'a%'")
        >>> from hedgerow.core.predicates.sql_text import predicate_text
        >>> predicate_text(w.queries[0].predicate("t"))
        "x >= 3 AND x <= 5 AND startswith(y, 'a')"
        """
        texts = [statements] if isinstance(statements, str) else list(statements)
        by_name = _schemas_by_name(schemas or {})
        queries: list[Query] = []
        skipped: list[str] = []
        unparsed: list[WorkloadError] = []
        for number, sql in enumerate(texts, 1):
            origin = "the text of the queries" if isinstance(statements, str) else f"statement {number}"
            for node in _statements(sql, dialect, origin):
                name = f"q{len(queries) + len(skipped) + 1}"
                query = None if isinstance(node, WorkloadError) else _query_of(node)
                if isinstance(node, WorkloadError):
                    unparsed.append(node)
                    skipped.append(f"query {name} is left out: {node}")
                elif query is None:
                    skipped.append(f"query {name} is left out: {node.key.upper()} has no SELECT that reads a table")
                else:
                    try:
                        scans = scans_of(query, by_name)
                        queries.append(Query(name, scans, text=to_sql(node, dialect), dialect=dialect))
                    except SchemaError as error:
                        skipped.append(f"query {name} is left out: {error}")
        if unparsed and not queries:
            raise unparsed[0]
        workload = cls(tuple(queries), tuple(skipped), dict(schemas or {}))
        return core.Workload.bind(workload, dict(by_name.values())) if by_name else workload

    @classmethod
    def from_file(cls, path: str | Path, schemas: Schemas | None = None, dialect: str = "spark") -> Workload:
        """Read a file of SQL statements, or a `.jsonl` file that `save` wrote."""
        try:
            content = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise WorkloadError(f"the workload {path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise WorkloadError(f"the workload {path} is not a text file in UTF-8") from error
        if Path(path).suffix == ".jsonl":
            workload = cls.from_jsonl(content)
            return workload.bind(schemas) if schemas else workload
        return cls.from_sql(content, schemas, dialect)

    def on(self, table: str, paths: Collection[str] = ()) -> Workload:
        names = dict.fromkeys(self.spellings(table, paths), table)
        return replace(super().on(table, paths), names={**self.names, **names})

    def bind(self, schemas: Schemas, session: Session | None = None) -> Workload:
        """Read the SQL again with these schemas, then convert literals to the type that Spark compares.

        Earlier schemas are still used: in a join they decide which table an unqualified name belongs to.
        """
        schemas, by_name = self._known(schemas)
        bound: list[Query] = []
        skipped = list(self.skipped)
        for query in self:
            try:
                bound.append(_reread(query, by_name))
            except SchemaError as error:
                skipped.append(f"query {query.id} is left out: {error}")
        workload = replace(self, queries=tuple(bound), skipped=tuple(skipped), schemas=schemas)
        return core.Workload.bind(workload, dict(by_name.values()), session)

    def with_values(
        self, schemas: Schemas, session: Session, values_of: Callable[[Sequence[OpenValue]], Sequence[Values]]
    ) -> tuple[Workload, list[str]]:
        """Return the workload with values for clocks and parameters, and a sentence for each condition left without.

        A query with parameters becomes several queries, which share its weight.

        Args:
            schemas: the tables that values are known of.
            values_of: takes the open values of all queries; returns values for the first variant of a query, and so on.
        """
        _, by_name = self._known(schemas)
        tables = {name.lower() for name in schemas}
        opened = [_open_values(query, by_name, tables) for query in self]
        variants = values_of([value for values in opened if values for value in values.met]) or [{}]
        queries: list[Query] = []
        left_out: list[str] = []
        for query, values in zip(self, opened, strict=True):
            if values is None:
                queries.append(query)
                continue
            several = any(value.has_parameter() for value in values.met)
            some = variants if several else variants[:1]
            closing = [OpenValues(chosen, tables) for chosen in some]
            queries += (replace(_reread(query, by_name, c), weight=query.weight / len(some)) for c in closing)
            left_out += (f"{c} in query {query.id}" for c in closing[0].left_out())
        workload = replace(self, queries=tuple(queries))
        return core.Workload.bind(workload, dict(by_name.values()), session), left_out

    def shown(self, query: Query) -> str:
        """Return the query's conditions on its tables, as text; those whose values are open come last."""
        return super().shown(query) + self._with_open_values(query)

    def kind(self, query: Query) -> str:
        return super().kind(query) + self._with_open_values(query)

    def _with_open_values(self, query: Query) -> str:
        values = _open_values(query, self._known({})[1], [table.lower() for table in query.tables()])
        return "" if values is None else f"; with open values: {' AND '.join(values.left_out())}"

    def _known(self, schemas: Schemas) -> tuple[dict[str, Any], dict[str, tuple[str, Schema]]]:
        """Return the schemas known before and these, and by each lower-case name the table's name and schema."""
        before = {name: schema for name, schema in self.schemas.items() if name.lower() not in self.names}
        by_name = _schemas_by_name(before | dict(schemas))
        by_name |= {old: by_name[new.lower()] for old, new in self.names.items() if new.lower() in by_name}
        return before | dict(schemas), by_name


def scans_of(
    node: exp.Expr, schemas: Mapping[str, tuple[str, Schema]], open_values: OpenValues | None = None
) -> tuple[Scan, ...]:
    """Return one scan for every occurrence of a base table; parts that are not understood read their whole tables.

    Raise SchemaError if the query names a column that none of its tables has.
    """
    open_values = open_values or OpenValues()
    try:
        builder, edges = _pushed_down(node, schemas)
        bases = builder.bases
        unseen = [t for t in node.find_all(exp.Table) if id(t) not in builder.seen]
    except (RecursionError, SqlglotError):
        bases, edges = [], []
        unseen = list(node.find_all(exp.Table))
    bases = bases + [_whole_table(t, schemas) for t in unseen if isinstance(t.this, exp.Identifier)]
    return tuple(_scan(base, bases, edges, open_values) for base in bases)


def _pushed_down(node: exp.Expr, schemas: Mapping[str, tuple[str, Schema]]) -> tuple[Builder, list[Edge]]:
    """Push every condition of a query down to its base tables; return these tables and the join edges."""
    builder, pushdown = Builder(schemas), Pushdown()
    pushdown.push(builder.query(node, {}, None), [])
    if pushdown.missing:
        columns = [name for base in builder.bases for name in (base.columns or {}).values()]
        raise SchemaError(f"there is no column {pushdown.missing[0]}{meant(pushdown.missing[0], columns)}")
    return builder, pushdown.edges


def _scan(base: Base, bases: list[Base], edges: list[Edge], open_values: OpenValues) -> Scan:
    own = [edge for edge in edges if edge.base is base and not base.whole]
    joins = [Join((e.column,), bases.index(e.other[0]), (e.other[1],)) for e in own if e.other is not None]
    reads = None if base.reads is None else tuple(sorted(base.reads))
    wanted, sums = None if base.whole else base.wanted, tuple(sorted(base.sums))
    # Not yet normalised: whether '9' is below '10' depends on the type of the column that they are compared with.
    where, keys = conjunction(*predicates(base, open_values)), tuple(sorted({edge.column for edge in own}))
    return Scan(base.table, where, reads, tuple(dict.fromkeys(joins)), wanted, sums, keys)


def _whole_table(table: exp.Table, schemas: Mapping[str, tuple[str, Schema]]) -> Base:
    name = name_of(table)
    named = schemas.get(name.lower()) or schemas.get(table.name.lower())
    return Base(named[0] if named else name, None, None, whole=True)


def _open_values(query: Query, schemas: Mapping[str, tuple[str, Schema]], tables: Collection[str]) -> OpenValues | None:
    """Return the open values of a query; None if no condition of it changes with time, user or parameters."""
    values = OpenValues(tables=tables)
    _reread(query, schemas, values)
    return values if values.left_out() else None


def _reread(query: Query, schemas: Mapping[str, tuple[str, Schema]], open_values: OpenValues | None = None) -> Query:
    node = _query_of(_parse_statements(query.text, query.dialect, f"query {query.id}")[0]) if query.text else None
    if node is None:
        return query
    if open_values is not None:
        open_values.mark(node)
    return replace(query, scans=scans_of(node, schemas, open_values))


def _schemas_by_name(schemas: Schemas) -> dict[str, tuple[str, Schema]]:
    return {name.lower(): (name, as_schema(schema)) for name, schema in schemas.items()}


def _open_negation(node: exp.Expr) -> exp.Expr:
    """Return NOT (x LIKE y) for x NOT LIKE y, because sqlglot stores some negations as a flag."""
    if not node.args.get("negate"):
        return node
    node.set("negate", None)
    return exp.Not(this=exp.paren(node, copy=False))


def _where(at: Mapping[str, Any]) -> str:
    """Return the place of a parse error of sqlglot, its message, and the text before it."""
    message = _OBJECT.sub(lambda match: match[1] or match[2], str(at.get("description"))).rstrip(".")
    near = f"{(at.get('start_context') or '')[-40:]}{at.get('highlight') or ''}".split("\n")[-1].strip()
    return f"line {at.get('line')}, column {at.get('col')}: {message}" + (f", after {near!r}" if near else "")


def _query_of(node: exp.Expr) -> exp.Expr | None:
    """Return the query in a statement: itself, or the source of an INSERT or CREATE TABLE; None for other ones."""
    if isinstance(node, exp.Query):
        return node
    if isinstance(node, exp.Insert | exp.Create) and isinstance(node.expression, exp.Query):
        return node.expression
    return None


def _parse(sql: str, dialect: str) -> list[exp.Expr | None]:
    """Parse statements; paths into variants, `j:a.b[0]`, become calls of `variant_get`.

    sqlglot reads such paths only in the dialect of Databricks."""
    try:
        return parse(sql, dialect)
    except ParseError:
        if dialect != "spark" or ":" not in sql:
            raise
        with suppress(ParseError):
            nodes = parse(sql, "databricks")
            if any(node and node.find(exp.JSONExtract) for node in nodes):
                return [node and node.transform(_open_variant_path) for node in nodes]
        raise


def _open_variant_path(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.JSONExtract) or not node.args.get("variant_extract"):
        return node
    value = node.this.transform(_open_variant_path)
    return exp.func("variant_get", value, node.expression, exp.Literal.string("variant"), dialect="spark")


def _statements(sql: str, dialect: str, origin: str) -> Iterator[exp.Expr | WorkloadError]:
    """Yield the statements of a text; for a statement that cannot be parsed, the error with its line."""
    try:
        yield from _parse_statements(sql, dialect, origin)
    except WorkloadError as error:
        pieces = _pieces(sql, dialect)
        if len(pieces) < 2:
            yield error
        else:
            for piece in pieces:
                yield from _statements(piece, dialect, origin)


def _pieces(sql: str, dialect: str) -> list[str]:
    """Return the statements of a text, blanks in place of all before them, so that errors name the line of the text."""
    try:
        semicolons = [t for t in sqlglot.tokenize(sql, read=dialect) if t.token_type == sqlglot.TokenType.SEMICOLON]
    except TokenError:
        return []
    starts, ends = [0, *(t.end + 1 for t in semicolons)], [*(t.start for t in semicolons), len(sql)]
    pieces = zip(starts, ends, strict=True)
    return [_NOT_NEWLINE.sub(" ", sql[:start]) + sql[start:end] for start, end in pieces if sql[start:end].strip()]


def _parse_statements(sql: str, dialect: str, origin: str) -> list[exp.Expr]:
    try:
        nodes = [n for n in _parse(sql, dialect) if n is not None and not isinstance(n, exp.Semicolon)]
        return [node.transform(_open_negation) for node in nodes]
    except ParseError as error:
        at = error.errors[0] if error.errors else {}
        raise WorkloadError(f"{origin} is not {dialect} SQL: {_where(at) if at else error}") from error
    except (TokenError, ValueError) as error:
        raise WorkloadError(f"{origin} is not {dialect} SQL: {error}") from error
    except RecursionError as error:
        raise WorkloadError(f"{origin} is nested too deeply to be parsed") from error
