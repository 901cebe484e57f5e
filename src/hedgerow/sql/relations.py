"""Build a query's FROM items as relations, each with its output columns.

    SELECT o.key FROM orders AS o LEFT JOIN (SELECT key, max(tax) AS tax FROM lines GROUP BY key) AS l ON ...

    Select  sources  o -> Base orders        outputs  key -> o.key
                     l -> Select  sources  lines -> Base lines
                                  outputs  key -> key, tax -> max(tax)

Names resolve as in Spark: letter case does not matter, and inner scopes come first. An ambiguous name does not resolve,
so at worst a predicate is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from hedgerow.core.predicates.nodes import Column
from hedgerow.core.predicates.schema import Schema, path_of
from hedgerow.core.workload.wanted_rows import WantedRows

# --- relations ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Base:
    """One occurrence of a base table; `columns` maps lower-case names to the schema's names, None without a schema."""

    table: str
    columns: dict[str, str] | None
    reads: set[str] | None = field(default_factory=set)  # None: all
    sums: set[str] = field(default_factory=set)  # the columns that the query sums, also for an average
    filters: list[exp.Expr] = field(default_factory=list)
    wanted: WantedRows | None = None  # what the query needs of the matching rows; None: it may need all of them
    whole: bool = False  # no condition is used: the table is sampled, pivoted or otherwise not understood
    node: exp.Table | None = None

    def spelled(self, name: str) -> str:
        """Return a column's name as the schema spells it."""
        return (self.columns or {}).get(name.lower(), name)

    def column(self, path: Sequence[str]) -> Column:
        """Return a column, or a field of one, by its path of names."""
        return Column((self.spelled(path[0]), *path[1:]))


@dataclass(eq=False)
class Unknown:
    """A source without known base tables: VALUES, a function, a recursive reference."""


@dataclass(eq=False)
class Select:
    """A SELECT with its sources; `renamed` are new names for its outputs, if the query gives them."""

    node: exp.Select
    scope: Scope
    joins: list[JoinStep]
    nested: dict[int, Relation]  # subqueries in its expressions, by the id of their node
    renamed: tuple[str, ...] = ()


@dataclass(eq=False)
class SetOperation:
    """A UNION, INTERSECT or EXCEPT; `renamed` are new names for its outputs, if the query gives them."""

    node: exp.SetOperation
    left: Relation
    right: Relation
    renamed: tuple[str, ...] = ()


Relation: TypeAlias = Base | Unknown | Select | SetOperation


@dataclass(eq=False)
class JoinStep:
    """A join of `source` to all sources before it; `kind` is INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""

    source: str
    kind: str
    on: exp.Expr | None
    using: tuple[str, ...] = ()


@dataclass(eq=False)
class Scope:
    """The sources of a SELECT by lower-case alias, in order; other names are resolved in the scope `outer`."""

    sources: dict[str, Relation]
    outer: Scope | None = None
    merged: dict[str, str] = field(default_factory=dict)  # the columns that USING merges, each with its source

    def resolve(self, column: exp.Column, all_visible: bool = False) -> tuple[Scope, str, tuple[str, ...]] | None:
        """Return the origin of a column: the scope, the source's alias, and the path of names within the source.

        `all_visible`: all sources are visible at the column's place. Then, if one source has a column of this name, no
        other can have one: Spark would refuse the query.
        """
        names = [p.name for p in column.parts]
        place = self._resolve_qualified(names) or self._resolve_unqualified(names, all_visible)
        if place is not None:
            return self, *place
        if self.outer is None or not (self.outer.has_alias(names) or self._has_no_column(names)):
            return None
        return self.outer.resolve(column)

    def has_alias(self, names: list[str]) -> bool:
        is_own = len(names) > 1 and any(name.lower() in self.sources for name in names[:-1])
        return is_own or (self.outer is not None and self.outer.has_alias(names))

    def _resolve_qualified(self, names: list[str]) -> tuple[str, tuple[str, ...]] | None:
        # db.table.column.field: a name before the column is the alias; two such names are ambiguous
        starts = [n for n in range(1, len(names)) if names[n - 1].lower() in self.sources]
        return (names[starts[0] - 1].lower(), tuple(names[starts[0] :])) if len(starts) == 1 else None

    def _resolve_unqualified(self, names: list[str], all_visible: bool) -> tuple[str, tuple[str, ...]] | None:
        if names[0].lower() in self.merged:
            return self.merged[names[0].lower()], tuple(names)
        has = {alias: _has_column(source, names[0]) for alias, source in self.sources.items()}
        having = [alias for alias, has_it in has.items() if has_it]
        unknown = [alias for alias, has_it in has.items() if has_it is None]
        sources = [self.sources[alias] for alias in unknown]
        if len(having) == 1 and (not unknown or (all_visible and all(map(_is_understood_table, sources)))):
            return having[0], tuple(names)
        if not having and len(unknown) == 1 and self.outer is None and isinstance(sources[0], Base | Select):
            return unknown[0], tuple(names)
        return None

    def lacks(self, names: list[str]) -> bool:
        """True if no source of this scope or an outer one has such a column."""
        return self._has_no_column(names) and (self.outer is None or self.outer.lacks(names))

    def _has_no_column(self, names: list[str]) -> bool:
        return all(_has_column(source, names[0]) is False for source in self.sources.values())


def _is_understood_table(source: Relation) -> bool:
    return isinstance(source, Base) and not source.whole


def _has_column(source: Relation, name: str) -> bool | None:
    """True if the source has a column of this name; None if that is unknown."""
    match source:
        case Base(columns=columns):
            return None if columns is None else name.lower() in columns
        case Unknown():
            return None
    named = outputs(source)
    return None if named is None else any(n.lower() == name.lower() for n, _ in named)


def outputs(relation: Relation) -> list[tuple[str, exp.Expr | None]] | None:
    """Return the relation's column names with their expressions in its own scope; None unless all are known."""
    match relation:
        case Base(columns=columns):
            return None if columns is None else [(name, exp.column(name, quoted=True)) for name in columns.values()]
        case Unknown():
            return None
        case SetOperation():
            left = outputs(relation.left)
            names: list[tuple[str, exp.Expr | None]] = [(name, None) for name, _ in left or ()]
            return _with_names(names if left is not None else None, relation.renamed)
        case Select():
            return _with_names(_select_outputs(relation), relation.renamed)


def _select_outputs(select: Select) -> list[tuple[str, exp.Expr | None]] | None:
    selected: list[tuple[str, exp.Expr | None]] = []
    for item in select.node.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            starred = [item.table.lower()] if isinstance(item, exp.Column) else list(select.scope.sources)
            hidden = {s.source for s in select.joins if s.kind in ("SEMI", "ANTI")}
            star = item.this if isinstance(item, exp.Column) else item
            if clauses_of(star) or any(s.using for s in select.joins):
                return None
            for alias in starred:
                source = select.scope.sources.get(alias)
                columns = None if source is None else outputs(source)
                if columns is None:
                    return None
                if alias not in hidden:
                    selected += [(n, exp.column(n, table=alias, quoted=True)) for n, _ in columns]
            continue
        inner = item.this if isinstance(item, exp.Alias) else item
        selected.append((item.alias_or_name, inner))
    return selected


def _with_names(
    columns: list[tuple[str, exp.Expr | None]] | None, names: tuple[str, ...]
) -> list[tuple[str, exp.Expr | None]] | None:
    if not names or columns is None:
        return columns
    if len(names) != len(columns):
        return None
    return [(name, node) for name, (_, node) in zip(names, columns, strict=True)]


def clauses_of(node: exp.Expr) -> list[str]:
    """Return sqlglot's keys of the arguments of a node. Callers refuse unexpected keys, also of later versions."""
    return [key for key, value in node.args.items() if value]


# --- building -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cte:
    """A common table expression, with the earlier expressions that it may refer to."""

    node: exp.Expr
    env: Mapping[str, _Cte | None]
    names: tuple[str, ...] = ()
    recursive: bool = False


Env: TypeAlias = Mapping[str, "_Cte | None"]  # None: a recursive reference


_MAX_DEPTH, _MAX_BASES = 60, 5000  # the depth of nested CTEs; the number of base tables in one query
_SESSION_CATALOG = "spark_catalog"  # its tables have the same names without it


def name_of(table: exp.Table) -> str:
    """Return the name of a table, without Spark's own catalog.

    >>> name_of(exp.to_table("spark_catalog.web.events")), name_of(exp.to_table("prod.web.events"))
    ('web.events', 'prod.web.events')
    """
    parts = [part.name for part in table.parts]
    return ".".join(parts[len(parts) > 2 and parts[0].lower() == _SESSION_CATALOG :])


class Builder:
    """A builder of relations. `bases` collects the occurrences of base tables; `seen` the ids of all table nodes."""

    def __init__(self, schemas: Mapping[str, tuple[str, Schema]]) -> None:
        self.schemas = schemas  # lower-case name -> (name, schema)
        self.bases: list[Base] = []
        self.seen: set[int] = set()
        self.depth = 0

    def query(self, node: exp.Expr, env: Env, outer: Scope | None, names: tuple[str, ...] = ()) -> Relation:
        """Return the relation of a SELECT, a set operation, or either in parentheses."""
        env = self._with(node, env)
        match node:
            case exp.Subquery() | exp.Paren():
                inner = self.query(node.this, env, outer, names)
                return _not_understood(inner) if set(clauses_of(node)) - {"this", "alias", "with_"} else inner
            case exp.SetOperation():
                left = self.query(node.this, env, outer)
                right = self.query(node.expression, env, outer)
                return SetOperation(node, left, right, names)
            case exp.Select():
                return self._select(node, env, outer, names)
        for query in node.find_all(exp.Query):
            self.query(query, env, outer)
        return Unknown()

    def _with(self, node: exp.Expr, env: Env) -> Env:
        clause = node.args.get("with_")
        if not isinstance(clause, exp.With):
            return env
        new_env = dict(env)
        for cte in clause.expressions:
            name = cte.alias.lower()
            inner: Env = {**new_env, name: None} if clause.recursive else dict(new_env)
            names = tuple(c.name for c in cte.args["alias"].args.get("columns") or ())
            new_env[name] = _Cte(cte.this, inner, names, bool(clause.recursive))
        return new_env

    def _select(self, node: exp.Select, env: Env, outer: Scope | None, names: tuple[str, ...]) -> Select:
        scope = Scope({}, outer)
        steps: list[JoinStep] = []
        start = node.args.get("from_")
        if isinstance(start, exp.From):
            self._add(start.this, "INNER", None, (), scope, steps, env)
        for join in node.args.get("joins") or ():
            self._join(join, scope, steps, env)
        for lateral in node.args.get("laterals") or ():
            self._add(lateral, "INNER", None, (), scope, steps, env)
        nested = {id(q): self.query(q, env, scope) for q in _subqueries(node)}
        return Select(node, scope, steps, nested, names)

    def _join(self, join: exp.Join, scope: Scope, steps: list[JoinStep], env: Env) -> None:
        side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
        step_kind = kind if kind in ("SEMI", "ANTI") else side if side in ("LEFT", "RIGHT", "FULL") else "INNER"
        is_unknown = (
            set(clauses_of(join)) - {"this", "on", "side", "kind", "using", "method", "hint"}
            or side not in ("", "LEFT", "RIGHT", "FULL")
            or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")
        )
        using = tuple(c.name for c in join.args.get("using") or ())
        method = str(join.args.get("method") or "").upper()
        if is_unknown or method not in ("", "NATURAL"):
            step_kind = "FULL"  # no condition is pushed through a join of an unknown kind
        if method == "NATURAL":
            using = ("",)  # unknown columns are merged
        self._add(join.this, step_kind, join.args.get("on"), using, scope, steps, env)

    def _add(
        self,
        node: exp.Expr,
        kind: str,
        on: exp.Expr | None,
        using: tuple[str, ...],
        scope: Scope,
        steps: list[JoinStep],
        env: Env,
    ) -> None:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and kind == "INNER" and not node.alias:
            # (a JOIN b ON ...): its sources are joined one by one, and the outer condition follows the last
            self._add(node.this, "INNER", None, (), scope, steps, env)
            for condition in [on] if on is not None else []:
                steps.append(JoinStep("", "INNER", condition))
            return
        alias = (node.alias_or_name or f"#{len(scope.sources)}").lower()
        while alias in scope.sources:
            alias += "#"  # the same alias twice: the name is ambiguous
        for name in (u.lower() for u in using if u):
            having = [a for a, source in scope.sources.items() if _has_column(source, name)]
            if name not in scope.merged and len(having) == 1 and kind in ("INNER", "LEFT", "SEMI", "ANTI"):
                scope.merged[name] = having[0]
        scope.sources[alias] = self._source(node, scope, env)
        steps.append(JoinStep(alias, kind, on, using))
        for join in node.args.get("joins") or () if isinstance(node, exp.Table) else ():
            self._join(join, scope, steps, env)

    def _source(self, node: exp.Expr, scope: Scope, env: Env) -> Relation:
        alias = node.args.get("alias")
        names = tuple(c.name for c in alias.args.get("columns") or ()) if isinstance(alias, exp.TableAlias) else ()
        unknown_clauses = bool(set(clauses_of(node)) - {"this", "alias", "db", "catalog", "joins", "hints"})
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                self.seen.add(id(node))
                return self._table(node, names, unknown_clauses, env)
            case exp.Subquery() if isinstance(node.this, exp.Query):
                return self.query(node, env, scope.outer, names)
        # LATERAL, UNNEST, VALUES, functions: their subqueries may read other tables.
        for inner_node in node.find_all(exp.Query):
            if inner_node is not node:
                self.query(inner_node, env, scope)
        return Unknown()

    def _table(self, node: exp.Table, names: tuple[str, ...], unknown_clauses: bool, env: Env) -> Relation:
        bare_name = node.name.lower()
        name = name_of(node)
        if not node.db and bare_name in env:
            cte = env[bare_name]
            if cte is None:
                return Unknown()
            inlined = self._inline(cte.node, cte.env, names or cte.names, unknown_clauses)
            return _without_conditions(inlined) if cte.recursive else inlined
        named = self.schemas.get(name.lower()) or self.schemas.get(bare_name)
        columns = None if named is None else {name.lower(): name for name in (path_of(c)[0] for c in named[1])}
        base = Base(named[0] if named else name, columns, whole=unknown_clauses or bool(names), node=node)
        if unknown_clauses or names:
            base.columns = None if unknown_clauses else {n.lower(): n for n in names}
            base.reads = None
        self.bases.append(base)
        return base

    def _inline(self, node: exp.Expr, env: Env, names: tuple[str, ...], unknown_clauses: bool) -> Relation:
        """Return the relation of a CTE, built again for each reference, because each may need other rows."""
        if self.depth > _MAX_DEPTH or len(self.bases) > _MAX_BASES:
            raise RecursionError("CTEs too deep or too many")
        self.depth += 1
        inlined = self.query(node, env, None, names)
        self.depth -= 1
        return _not_understood(inlined) if unknown_clauses else inlined


def _not_understood(relation: Relation) -> Relation:
    """Wrap a relation whose rows pass through a step that is not understood (PIVOT, TABLESAMPLE)."""
    wrapper = exp.Select(expressions=[exp.Star()], limit=exp.Limit(expression=exp.Literal.number(1)))
    return Select(wrapper, Scope({"#": relation, "##": Unknown()}), [JoinStep("#", "INNER", None)], {})


def _without_conditions(relation: Relation) -> Relation:
    """Wrap a recursive CTE so that no condition is pushed inside, because its first rows are not its result."""
    names = outputs(relation)
    if names is None:
        return _not_understood(relation)
    columns = [exp.column(name, table="#", quoted=True) for name, _ in names]
    wrapper = exp.Select(expressions=columns, limit=exp.Limit(expression=exp.Literal.number(1)))
    return Select(wrapper, Scope({"#": relation}), [JoinStep("#", "INNER", None)], {})


def _subqueries(select: exp.Select) -> list[exp.Query]:
    """Return the outermost queries inside the select's own expressions, without its FROM items and CTEs."""
    queries: list[exp.Query] = []
    todo: list[exp.Expr] = []
    for key, value in select.args.items():
        if key in ("with_", "from_", "laterals"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                todo += [i for i in (item.args.get("on"),) if isinstance(i, exp.Expr)]
            elif isinstance(item, exp.Expr):
                todo.append(item)
    while todo:
        node = todo.pop()
        if isinstance(node, exp.Query):
            queries.append(node)
        else:
            todo.extend(node.iter_expressions())
    return queries
