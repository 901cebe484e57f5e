"""The rows that a query needs of the matching rows of a scan: the first, any, or those of aggregates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hedgerow.core.errors import SchemaError
from hedgerow.core.predicates.binding import bind, bind_column
from hedgerow.core.predicates.nodes import Column, IsNull, Term
from hedgerow.core.predicates.schema import Schema

Function: TypeAlias = Literal["count", "sum", "min", "max", "avg"]


@dataclass(frozen=True, slots=True)
class Top:
    """The first `rows` rows in the order of a column; ORDER BY with LIMIT needs no others."""

    column: Column
    descending: bool
    rows: int
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class AnyRows:
    """Any `rows` rows, as for LIMIT without ORDER BY."""

    rows: int


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Functions of columns over all rows, or over the groups of GROUP BY; `count` of None is `count(*)`."""

    values: tuple[tuple[Function, Column | None], ...]
    groups: tuple[Term, ...] = ()


WantedRows: TypeAlias = Top | AnyRows | Aggregates


def bind_wanted(wanted: WantedRows | None, schema: Schema) -> WantedRows | None:
    """Return the same with names in the schema's letter case; None if the schema lacks a column."""
    match wanted:
        case Top(column, descending, rows, nulls_first):
            return Top(bind_column(column, schema), descending, rows, nulls_first)
        case Aggregates(values, groups):
            try:
                bound = tuple((name, of and bind_column(of, schema)) for name, of in values)
                return Aggregates(bound, tuple(_bound_term(group, schema) for group in groups))
            except SchemaError:
                return None
    return wanted


def _bound_term(term: Term, schema: Schema) -> Term:
    bound = bind(IsNull(term), schema)
    return bound.term if isinstance(bound, IsNull) else term
