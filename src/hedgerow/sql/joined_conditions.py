"""Turn the conditions of joined tables into conditions on the table whose foreign keys lead to them.

See `core/workload/references`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

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
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.core.workload.references import MAX_STEPS, Joined, Reference, joined_scans
from hedgerow.sql.predicates import spark_sql

Move = Callable[[Column], Column]


def with_joined(
    query: Query, table: str, keys: Sequence[Reference], steps: int = MAX_STEPS, known: Collection[str] | None = None
) -> tuple[Query, dict[str, Joined]]:
    """Return the query with the scans of this table only, and the joined rows that it needs, by column name.

    The scans have the conditions of joined tables as conditions on columns of joined rows. `known`: use the conditions
    of only these joined rows.
    """
    scans: list[Scan] = []
    used: dict[str, Joined] = {}
    for scan in query.scans:
        if scan.table.lower() != table.lower():
            continue
        conditions = [scan.predicate]
        for joined, joined_scan in joined_scans(query, scan, keys, steps):
            if joined_scan.predicate != TRUE and (known is None or joined.name in known):
                conditions.append(below(joined_scan.predicate, joined.name))
                on_the_way = [Joined(joined.steps[:n]) for n in range(1, len(joined.steps) + 1)]
                used |= {step.name: step for step in on_the_way}
        scans.append(replace(scan, predicate=normalise(conjunction(*conditions)), joins=()))
    return replace(query, scans=tuple(scans), text=""), used


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
