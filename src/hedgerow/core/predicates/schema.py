"""Schemas (column names and types) and the session settings on which the meaning of a predicate depends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hedgerow.core.predicates.nodes import Column
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type

Schema = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Session:
    """The session's time zone; if it is unknown, comparisons that depend on it become opaque."""

    zone: str | None = None


def as_schema(given: Mapping[str, Any] | pa.Schema) -> dict[str, Type]:
    """A schema from Arrow or from `{"price": "decimal(12,2)"}`; fields of structs get dotted names."""
    if isinstance(given, pa.Schema):
        return {term_text(Column(path)): Type.of_arrow(t) for field in given for path, t in _fields((), field)}
    return {_quoted(name): t if isinstance(t, Type) else Type.parse(str(t)) for name, t in given.items()}


def _fields(outer: tuple[str, ...], field: pa.Field) -> list[tuple[tuple[str, ...], pa.DataType]]:
    path = (*outer, field.name)
    inner = [f for child in field.type for f in _fields(path, child)] if pa.types.is_struct(field.type) else []
    return [(path, field.type), *inner]


def _quoted(name: str) -> str:
    return name if "`" in name else ".".join(map(quote_name, name.split(".")))


def path_of(name: str) -> tuple[str, ...]:
    """The parts of a dotted name.

    >>> path_of("address.`zip code`")
    ('address', 'zip code')
    """
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name))
