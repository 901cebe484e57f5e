"""The rows that a query needs of the matching rows of a scan: the first, any, or those of aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from hedgerow.core.errors import SchemaError
from hedgerow.core.predicates.binding import bind, bind_column
from hedgerow.core.predicates.nodes import Column, IsNull, Term
from hedgerow.core.predicates.predicate_json import decode, encode
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


def wanted_to_json(wanted: WantedRows | None) -> dict[str, Any] | None:
    """
    >>> wanted_to_json(AnyRows(5))
    {'limit': 5}
    """
    match wanted:
        case Top(column, descending, rows, nulls_first):
            order = {"column": column.path, "descending": descending, "nulls_first": nulls_first}
            return {"limit": rows, "order": order}
        case AnyRows(rows):
            return {"limit": rows}
        case Aggregates(values, groups):
            listed = [{"function": name, "column": of and of.path} for name, of in values]
            return {"values": listed, "groups": list(map(encode, groups))}
    return None


def wanted_of_json(value: Mapping[str, Any] | None) -> WantedRows | None:
    """Return what `wanted_to_json` wrote."""
    if value is None:
        return None
    if "limit" not in value:
        values = tuple((_function(v["function"]), v["column"] and Column(tuple(v["column"]))) for v in value["values"])
        return Aggregates(values, tuple(map(decode, value["groups"])))
    order = value.get("order")
    if order is None:
        return AnyRows(int(value["limit"]))
    column = Column(tuple(order["column"]))
    return Top(column, bool(order["descending"]), int(value["limit"]), bool(order["nulls_first"]))


def _function(name: Any) -> Function:
    if name not in get_args(Function):
        raise ValueError(f"{name!r} is no function")
    function: Function = name
    return function
