"""Sums of columns as items of an index: `sum(price)` has one value for each file, unless it is unknown.

Only integers and decimals are summed, because a sum of floats depends on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import Column, Expr, Feature
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import UNBOUNDED, Bound, Stats, TermStats

MAX_DIGITS = 28  # Spark gives a sum ten digits more, and 38 digits at most
_MAX_DIGITS_AS_DOUBLE = 11  # of a decimal: Spark sums it without its point, and gives an average four digits more


def sum_of(column: Column) -> Expr:
    """Return the sum of a column as an item of an index.

    >>> sum_of(Column(("price",))).sql
    'sum(price)'
    """
    return Expr(sum_text(term_text(column)), (column,))


def sum_text(column: str) -> str:
    """Return the name of a column's sum in an index, by the column's text."""
    return f"sum({column})"


def is_sum(item: Feature) -> bool:
    """True if the item is the sum of a column."""
    return isinstance(item, Expr) and len(item.columns) == 1 and item == sum_of(item.columns[0])


def summable(columns: Sequence[str], schema: Mapping[str, Type]) -> tuple[Column, ...]:
    """Return the columns of these names whose sums an index can hold."""
    return tuple(column for name in columns if has_sum(column := Column((name,)), schema))


def has_sum(column: Column, schema: Mapping[str, Type]) -> bool:
    """True if an index can hold the sum of a column."""
    type_ = schema.get(term_text(column), Type(kinds.OTHER))
    return type_.kind == kinds.INT or (type_.kind == kinds.DECIMAL and type_.precision <= MAX_DIGITS)


def averaged_as_double(type_: Type) -> bool:
    """True if Spark adds the values of this type up as doubles to average them, and the index has exact sums.

    >>> [averaged_as_double(Type.parse(name)) for name in ("int", "decimal(11,2)", "decimal(12,2)", "double")]
    [True, True, False, False]
    """
    is_short = type_.kind == kinds.DECIMAL and type_.precision <= _MAX_DIGITS_AS_DOUBLE
    return is_short or type_.kind == kinds.INT


def sum_stats(type_: Type, sums: Sequence[Value]) -> TermStats:
    """Return the statistics of the sum of a column of this type in each file; None means that a sum is unknown."""
    bounds = [(UNBOUNDED, UNBOUNDED) if value is None else (Bound(value), Bound(value)) for value in sums]
    sum_type = Type("bigint") if type_.kind == kinds.INT else Type("decimal", MAX_DIGITS + 10, type_.scale)
    return TermStats.build(sum_type, bounds, [0] * len(sums))


def with_assumed_sums(stats: Stats, columns: Sequence[Column], schema: Mapping[str, Type]) -> Stats:
    """Return the statistics as if they had a sum of each column, for an estimate: any number stands for the sums."""
    known = [column for column in columns if has_sum(column, schema)]
    sums = {sum_of(column).sql: sum_stats(schema[term_text(column)], [0] * len(stats)) for column in known}
    return replace(stats, terms={**stats.terms, **sums})
