"""Turn the conditions of joined tables into conditions on the table whose foreign keys lead to them.

See `core/workload/references`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import sqlglot
from sqlglot import exp

from hedgerow.core.predicates.nodes import (
    TRUE,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Expr,
    Feature,
    In,
    IsNull,
    Like,
    Opaque,
    Predicate,
    Prefix,
    Term,
    columns_in,
    conjunction,
    map_children,
)
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.schema import Schema
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.core.workload.references import MAX_STEPS, Joined, Reference, joined_scans
from hedgerow.core.workload.summaries import on_summaries
from hedgerow.sql.predicates import spark_sql

Move = Callable[[Column], Column]
Place = tuple[Joined | None, str]  # a column of joined rows, or of the table itself


def with_joined(
    query: Query,
    table: str,
    keys: Sequence[Reference],
    steps: int = MAX_STEPS,
    known: Collection[str] | None = None,
    schemas: Mapping[str, Schema] = MappingProxyType({}),
) -> tuple[Query, dict[str, Joined]]:
    """Return the query with the scans of this table only, and the joined rows that it needs, by column name.

    The scans have the conditions of joined tables as conditions on columns of joined rows. `known`: use the conditions
    of only these joined rows. `schemas`: by lower-case names of tables. Columns of two of the rows are compared if the
    tables are joined over them, and the schemas have the same type for both.
    """
    scans: list[Scan] = []
    used: dict[str, Joined] = {}
    for scan in query.scans:
        if scan.table.lower() != table.lower():
            continue
        conditions, chains = [scan.predicate], list[Joined]()
        reached = [(j, s) for j, s in joined_scans(query, scan, keys, steps) if known is None or j.name in known]
        for joined, joined_scan in reached:
            condition = on_joined(joined_scan.predicate, joined)
            if condition != TRUE:
                conditions.append(condition)
                chains.append(joined)
        rows = [(j, s) for j, s in reached if not j.summaries]
        for left, right in _equal_columns(query, [(None, scan), *rows], schemas):
            conditions.append(CompareTerms(column_of(*left), "=", column_of(*right)))
            chains += [joined for joined, _ in (left, right) if joined is not None]
        on_the_way = [Joined(joined.steps[:n]) for joined in chains for n in range(1, len(joined.steps) + 1)]
        used |= {step.name: step for step in on_the_way}
        scans.append(replace(scan, predicate=normalise(conjunction(*conditions)), joins=()))
    return replace(query, scans=tuple(scans), text=""), used


def on_joined(p: Predicate, joined: Joined) -> Predicate:
    """Return a condition on joined rows as one on the table where the keys begin."""
    return on_summaries(p, joined.summaries, joined.name) if joined.summaries else below(p, joined.name)


def column_of(joined: Joined | None, name: str) -> Column:
    """Return a column of the table itself, or of the rows that a chain of keys leads to."""
    return Column((name,)) if joined is None else Column((joined.name, name))


def _equal_columns(
    query: Query, reached: Sequence[tuple[Joined | None, Scan]], schemas: Mapping[str, Schema]
) -> Iterator[tuple[Place, Place]]:
    """Yield the columns of two rows over which the query joins their tables, unless keys make them equal anyway."""

    def kind(scan: Scan, column: str) -> Type | None:
        return schemas.get(scan.table.lower(), {}).get(quote_name(column))

    for joined, scan in reached:
        for join in scan.joins:
            for other, other_scan in reached:
                if other_scan is not query.scans[join.other]:
                    continue
                for mine, theirs in zip(join.columns, join.other_columns, strict=True):
                    is_same_type = kind(scan, mine) == kind(other_scan, theirs) is not None
                    if is_same_type and _before_keys(joined, mine) != _before_keys(other, theirs):
                        yield (joined, mine), (other, theirs)


def _before_keys(joined: Joined | None, name: str) -> Place:
    """Return the column that keys make equal to this one, nearest to the table; the column itself if there is none.

    >>> lines = Reference("lineitem", ("l_suppkey",), "supplier", ("s_suppkey",))
    >>> _before_keys(Joined((lines,)), "s_suppkey"), _before_keys(Joined((lines,)), "s_name")[1]
    ((None, 'l_suppkey'), 's_name')
    """
    while joined is not None and name in joined.steps[-1].other_columns:
        *before, step = joined.steps
        joined, name = Joined(tuple(before)) if before else None, step.columns[step.other_columns.index(name)]
    return joined, name


def below(p: Predicate, name: str) -> Predicate:
    """Return the predicate with every column as a field of the struct column `name`.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> from hedgerow.core.predicates.sql_text import predicate_text
    >>> predicate_text(below(Compare(col("o_orderdate"), "<", lit(5)), "l_orderkey->orders"))
    '`l_orderkey->orders`.o_orderdate < 5'
    """
    return _moved(p, lambda column: Column((name, *column.path)))


def outside(item: Feature) -> Feature:
    """Return the opposite of `below` for an item whose columns are all fields of one struct."""
    if isinstance(item, Predicate):
        return _moved(item, _field)
    return _moved_term(item, _field)


def _field(column: Column) -> Column:
    return Column(column.path[1:])


def struct_of(item: Feature) -> str | None:
    """Return the struct column that has all columns of the item as fields; None if there is no such struct."""
    tops = {c.path[0] if len(c.path) > 1 else None for c in columns_in(item)}
    return tops.pop() if len(tops) == 1 else None


def _moved(p: Predicate, to: Move) -> Predicate:
    match p:
        case Compare() | In() | Prefix() | Like() | IsNull():
            return replace(p, term=_moved_term(p.term, to))
        case CompareTerms(left, op, right):
            return CompareTerms(_moved_term(left, to), op, _moved_term(right, to))
        case Opaque(sql, columns):
            return Opaque(_moved_text(sql, to), _moved_columns(columns, to))
    return map_children(p, lambda kid: _moved(kid, to))


def _moved_term(t: Term, to: Move) -> Term:
    match t:
        case Column():
            return to(t)
        case Cast(column, type_):
            return Cast(to(column), type_)
        case Expr(sql, columns, type_):
            return Expr(_moved_text(sql, to), _moved_columns(columns, to), type_)


def _moved_columns(columns: Iterable[Column], to: Move) -> tuple[Column, ...]:
    return tuple(sorted(map(to, columns), key=term_text))


def _moved_text(sql: str, to: Move) -> str:
    """Return the same expression over moved columns, in the form in which workloads store expressions."""

    def path(node: exp.Expr) -> tuple[str, ...] | None:
        if isinstance(node, exp.Column):
            return tuple(part.name for part in node.parts)
        inner = path(node.this) if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier) else None
        return inner and (*inner, node.expression.name)

    def moved(node: exp.Expr) -> exp.Expr:
        names = path(node)
        return node if names is None else sqlglot.parse_one(term_text(to(Column(names))), read="spark")

    return spark_sql(
        sqlglot.parse_one(sql, read="spark").transform(moved), lambda c: Column(tuple(p.name for p in c.parts))
    )
