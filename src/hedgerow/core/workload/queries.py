"""The queries of a workload. A query is a list of scans, each of one base table and with one predicate.

A row on which the predicate is not TRUE cannot change the query's result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hedgerow.core.errors import FormatError, SchemaError, WorkloadError, counted, warn
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import (
    ATOMS,
    TRUE,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Predicate,
    Prefix,
    atoms_of,
    children,
    columns_of,
    disjunction,
    map_children,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.predicate_json import decode, encode
from hedgerow.core.predicates.schema import Schema, Session, as_schema
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.text_file import write_text
from hedgerow.core.workload.drawn import drawn_by_weight
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Top, WantedRows, bind_wanted

_NAME_OR_LITERAL = re.compile(r"(`[^`]*`)|'(?:[^'\\]|\\.)*'|(?<![\w.])\d[\w.]*")


@dataclass(frozen=True, slots=True)
class Join:
    """An equi-join edge: rows of the scan matter only if `columns` equal `other_columns` of a row of scan `other`."""

    columns: tuple[str, ...]
    other: int
    other_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """One use of a base table in a query; rows on which `predicate` is not TRUE do not change the result.

    `wanted`: what the query needs of the other rows; None: it may need all of them.
    """

    table: str
    predicate: Predicate = TRUE
    columns: tuple[str, ...] | None = None  # the columns that the query reads; None: unknown, so all
    joins: tuple[Join, ...] = ()
    wanted: WantedRows | None = None
    sums: tuple[str, ...] = ()  # the columns that the query sums
    keys: tuple[str, ...] = ()  # the columns that must equal one of other rows, those of `joins` and of computed ones


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, with its scans; `weight`: how often it counts.

    `keyed`: columns whose conditions are the keys of joins, which only an attached session knows while the query runs.
    """

    id: str
    scans: tuple[Scan, ...]
    weight: float = 1.0
    text: str = ""
    dialect: str = "spark"
    keyed: tuple[str, ...] = ()

    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scan.table for scan in self.scans))

    def reads(self, table: str) -> bool:
        return bool(self._scans(table))

    def _scans(self, table: str) -> list[Scan]:
        return [s for s in self.scans if s.table.lower() == table.lower()]

    def predicate(self, table: str) -> Predicate:
        """Return the condition on rows of the table that matter in at least one of its scans."""
        scans = self._scans(table)
        return scans[0].predicate if len(scans) == 1 else normalise(disjunction(*(s.predicate for s in scans)))

    def written(self, table: str) -> Predicate:
        """Return the condition that the text says: without the keys of joins."""
        p = self.predicate(table)
        return normalise(_without(p, self.keyed)) if self.keyed else p

    def without(self, table: str, columns: Collection[str]) -> Query:
        """Return the query without its conditions on these columns of the table."""
        scans = (
            replace(s, predicate=normalise(_without(s.predicate, columns))) if s.table.lower() == table.lower() else s
            for s in self.scans
        )
        return replace(self, scans=tuple(scans)) if columns else self

    def without_keys(self, table: str, columns: Collection[str]) -> Query:
        """Return the query without what the keys of its joins were, for these columns of the table."""
        known = set(columns) & set(self.keyed)
        return replace(self.without(table, known), keyed=tuple(c for c in self.keyed if c not in known))

    def unfiltered(self, table: str, columns: Iterable[str]) -> tuple[str, ...]:
        """Return those of the columns on which the query has no condition but IS NOT NULL, which every join adds."""
        filters = (atom for atom in atoms_of(self.predicate(table)) if not isinstance(atom, IsNull))
        return tuple(sorted(set(columns) - {column.path[0] for atom in filters for column in columns_of(atom)}))

    def wanted(self, table: str) -> WantedRows | None:
        """Return what the query needs of the matching rows of its only scan of the table; None: perhaps all of them."""
        scans = self._scans(table)
        return scans[0].wanted if len(scans) == 1 else None

    def columns(self, table: str) -> tuple[str, ...] | None:
        """Return the columns that the scans of the table read; None if they are unknown for one scan."""
        by_scan = [s.columns for s in self._scans(table)]
        if any(columns is None for columns in by_scan):
            return None
        return tuple(dict.fromkeys(c for columns in by_scan for c in columns or ()))


def _without(p: Predicate, columns: Collection[str]) -> Predicate:
    """Return the predicate with TRUE for each condition on these columns."""
    if isinstance(p, ATOMS) or (isinstance(p, Not) and isinstance(p.child, IsNull)):
        return TRUE if {column.path[0] for column in columns_of(p)} & set(columns) else p
    return map_children(p, lambda child: _without(child, columns))


def summed_columns(queries: Iterable[Query], table: str) -> list[str]:
    """Return the columns of a table that the queries sum."""
    scans = (scan for query in queries for scan in query.scans if scan.table.lower() == table.lower())
    return sorted({name for scan in scans for name in scan.sums})


def joined_columns(queries: Iterable[Query], table: str) -> list[str]:
    """Return the columns of a table by which the queries join other rows to its rows."""
    scans = (scan for query in queries for scan in query.scans if scan.table.lower() == table.lower())
    return sorted({name for scan in scans for name in scan.keys})


def in_rounds(queries: Sequence[Query], rounds: int) -> list[Query]:
    """Return all queries so many times, one round after the other; the rounds share the weight of a query."""
    return [replace(query, weight=query.weight / rounds) for query in queries] * rounds


W = TypeVar("W", bound="Workload")
_SHOWN, _SHOWN_WIDTH = 12, 100  # lines and columns of a workload in print


@dataclass(frozen=True, repr=False)
class Workload:
    """Queries in the order they ran; `skipped` has a sentence with the reason for each query left out."""

    queries: tuple[Query, ...]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.queries)

    @classmethod
    def of(cls: type[W], table: str, predicates: Iterable[Predicate]) -> W:
        """Return a workload with one query on the table for each predicate.

        >>> from hedgerow.core.predicates.nodes import col, lit
        >>> len(Workload.of("t", [Compare(col("x"), "<", lit(5))]))
        1
        """
        return cls(tuple(Query(f"q{i}", (Scan(table, p),)) for i, p in enumerate(predicates)))

    def __repr__(self) -> str:
        """Return a text that fits a screen: how many queries, and the heaviest kinds with an example of each.

        >>> from hedgerow.core.predicates.nodes import col, lit
        >>> print(Workload.of("t", [Compare(col("x"), "<", lit(n)) for n in (3, 4)]))
        2 queries of 1 kind on t
             2  t: x < 3
        """
        kinds: dict[str, tuple[float, Query]] = {}
        for q in self:
            key = self.kind(q)
            weight, example = kinds.get(key, (0.0, q))
            kinds[key] = (weight + q.weight, example)
        count, of = counted(len(self), "query", "queries"), counted(len(kinds), "kind")
        lines = [f"{count} of {of} on {', '.join(self.tables()) or 'no table'}"]
        heaviest = sorted(kinds.values(), key=lambda kind: -kind[0])
        lines += [f"{weight:6,.0f}  {self.shown(example)}" for weight, example in heaviest[:_SHOWN]]
        lines += [f"and {len(kinds) - _SHOWN:,} kinds more"] if len(kinds) > _SHOWN else []
        lines += [f"{counted(len(self.skipped), 'remark')}; the first: {self.skipped[0]}"] if self.skipped else []
        return "\n".join(line if len(line) <= _SHOWN_WIDTH else f"{line[: _SHOWN_WIDTH - 3]}..." for line in lines)

    def shown(self, query: Query) -> str:
        """Return the query's conditions on its tables, as text."""
        return "; ".join(f"{t}: {predicate_text(query.predicate(t))}" for t in query.tables()) or "no table"

    def kind(self, query: Query) -> str:
        """Return a text that queries have in common if they differ in literals only."""
        return "; ".join(f"{t}: {shape(query.predicate(t))}" for t in query.tables())

    def warn_of_left_out(self, skipped: Sequence[str]) -> None:
        """Warn that queries of this workload are left out. `skipped`: the reason for each, unreadable ones too."""
        statements = counted(len(self) + len(self.skipped), "query", "queries")
        warn(f"{len(skipped)} of {statements} {'is' if len(skipped) == 1 else 'are'} left out", skipped)

    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t for q in self for t in q.tables()))

    def only_table(self) -> str | None:
        """Return the table that all queries read, in its longest spelling; None if they read several.

        >>> Workload((*Workload.of("events", [TRUE]), *Workload.of("web.events", [TRUE]))).only_table()
        'web.events'
        """
        longest = max(self.tables(), key=len, default=None)
        return longest if longest and all(is_spelling(t, longest) for t in self.tables()) else None

    def spellings(self, table: str, paths: Collection[str] = ()) -> set[str]:
        """Return the names, in lower case, by which the queries call a table: `events`, `web.events`, ...

        If they read a single table, it may have any name. WorkloadError if they do not read it, or if the name may mean
        two tables. `paths`: further names that are known to mean it, such as delta.`/a/place`.
        """
        known = {path.lower() for path in paths}
        tables, only = {t.lower() for t in self.tables()} - known, self.only_table()
        names = {t for t in tables if is_spelling(t, table)} or (tables if only else set())
        longest = max(names, key=len, default="")
        if not names and not known:
            named = ", ".join(sorted(self.tables())[:8]) or "no table at all"
            raise WorkloadError(f"the workload reads {named}, but not {table}: name the queries' table with table=")
        if any(not is_spelling(t, longest) for t in names):
            if table.lower() in names and "." in table:
                return {table.lower()} | known
            raise WorkloadError(f"{table} may be {' or '.join(sorted(names - {table.lower()}))}: name one with table=")
        return names | known

    def on(self: W, table: str, paths: Collection[str] = ()) -> W:
        """Return the queries that read the table, which is called `table` in them; the others are `skipped`.

        `paths`: as in `spellings`."""
        names = self.spellings(table, paths)
        queries = [q for q in self if any(map(q.reads, names))]
        left_out = [
            f"query {q.id} is left out: it reads {', '.join(q.tables()) or 'no table'}, not {table}"
            for q in self
            if not any(map(q.reads, names))
        ]
        return replace(
            self, queries=tuple(_renamed(q, names, table) for q in queries), skipped=(*self.skipped, *left_out)
        )

    def bind(self: W, schemas: Mapping[str, Any], session: Session | None = None) -> W:
        """Return the queries with names in the schema's letter case, and literals in the type that Spark compares."""
        by_name = {name.lower(): as_schema(schema) for name, schema in schemas.items()}
        bound, skipped = [], list(self.skipped)
        for q in self:
            try:
                bound.append(_bound(q, by_name, session or Session()))
            except SchemaError as error:
                skipped.append(f"query {q.id} is left out: {error}")
        return replace(self, queries=tuple(bound), skipped=tuple(skipped))

    def sampled(self: W, limit: int) -> W:
        """Return at most `limit` queries, in their order; each kind keeps about its share of the weight."""
        if len(self) <= limit:
            return self
        drawn = drawn_by_weight([q.weight for q in self], lambda i: _kind(self.queries[i]), limit)
        return replace(self, queries=tuple(replace(self.queries[i], weight=weight) for i, weight in drawn.items()))

    def to_jsonl(self) -> str:
        return "".join(json.dumps(encode(q)) + "\n" for q in self)

    @classmethod
    def from_jsonl(cls: type[W], lines: str) -> W:
        return cls(tuple(_query_of_json(n, line) for n, line in enumerate(lines.split("\n"), 1) if line.strip()))

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_jsonl(), "the queries")


def shape(p: Predicate) -> str:
    """Return the text of a predicate without its literals: predicates of one shape differ in literals only.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> shape(Compare(col("x"), "<", lit(5)))
    'x < ?int'
    """
    match p:
        case Compare(term, op, literal):
            return f"{term_text(term)} {op} ?{literal.kind}"
        case In(term, literals):
            return f"{term_text(term)} IN ?{literals[0].kind if literals else ''}"
        case Prefix(term):
            return f"startswith({term_text(term)}, ?)"
        case Like(term):
            return f"{term_text(term)} LIKE ?"
        case Opaque(sql):
            return _NAME_OR_LITERAL.sub(lambda found: found[1] or "?", sql)
    kids = children(p)
    return f"{type(p).__name__}({', '.join(sorted(map(shape, kids)))})" if kids else predicate_text(p)


def _kind(query: Query) -> list[tuple[str, str, str]]:
    return [(scan.table, shape(scan.predicate), repr(scan.wanted)) for scan in query.scans]


def _bound(query: Query, schemas: Mapping[str, Schema], session: Session) -> Query:
    scans = []
    for scan in query.scans:
        schema = schemas.get(scan.table.lower())
        if schema is None:
            scans.append(scan)
            continue
        names = {name.lower(): name for name in schema}
        reads = scan.columns and tuple(names.get(c.lower(), c) for c in scan.columns)
        sums, keys = (tuple(names.get(c.lower(), c) for c in some) for some in (scan.sums, scan.keys))
        predicate = normalise(bind(scan.predicate, schema, session))
        wanted = bind_wanted(scan.wanted, schema)
        scans.append(replace(scan, predicate=predicate, columns=reads, wanted=wanted, sums=sums, keys=keys))
    return replace(query, scans=tuple(scans))


def is_spelling(name: str, other: str) -> bool:
    """True if two names may mean one table: one is the other without its catalog or schema.

    >>> is_spelling("web.events", "EVENTS"), is_spelling("web.events", "hr.events")
    (True, False)
    """
    a, b = (text.lower().split(".") for text in (name, other))
    shorter = min(len(a), len(b))
    return a[-shorter:] == b[-shorter:]


def _renamed(query: Query, old: Collection[str], new: str) -> Query:
    scans = (replace(s, table=new) if s.table.lower() in old else s for s in query.scans)
    return replace(query, scans=tuple(scans))


def _query_of_json(number: int, line: str) -> Query:
    try:
        query = decode(json.loads(line), (Query, Scan, Join, Top, AnyRows, Aggregates))
        if not isinstance(query, Query) or not all(isinstance(scan.predicate, Predicate) for scan in query.scans):
            raise ValueError("it has other members than a query")
        return query
    except (ValueError, AttributeError, TypeError, FormatError) as error:
        raise FormatError(f"line {number} of the workload is not a query: {error}") from error
