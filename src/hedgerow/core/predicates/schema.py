"""Schemas (column names and types), and the facts of a session that the meaning of a predicate depends on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hedgerow.core.predicates.nodes import Column
from hedgerow.core.predicates.sql_text import quote_name, term_text
from hedgerow.core.predicates.types import Type

Schema = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Session:
    """A session's time zone and functions; comparisons that depend on something unknown become opaque.

    `functions`: the types of the values that users' functions return, by name in lower case."""

    zone: str | None = None
    functions: Mapping[str, Type] = field(default_factory=dict)


def as_schema(schema: Mapping[str, Any] | pa.Schema) -> dict[str, Type]:
    """Return a schema from Arrow or from `{"price": "decimal(12,2)"}`; fields of structs get dotted names."""
    if isinstance(schema, pa.Schema):
        return {term_text(Column(path)): Type.of_arrow(t) for field in schema for path, t in _fields((), field)}
    return {_quoted(name): t if isinstance(t, Type) else Type.parse(str(t)) for name, t in schema.items()}


def _fields(outer: tuple[str, ...], field: pa.Field) -> list[tuple[tuple[str, ...], pa.DataType]]:
    path = (*outer, field.name)
    inner = [f for child in field.type for f in _fields(path, child)] if pa.types.is_struct(field.type) else []
    return [(path, field.type), *inner]


def _quoted(name: str) -> str:
    return name if "`" in name else ".".join(map(quote_name, name.split(".")))


def path_of(name: str) -> tuple[str, ...]:
    """Return the parts of a dotted name.

    >>> path_of("address.`zip code`")
    ('address', 'zip code')
    """
    steps = re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", name)
    return tuple(quoted.replace("``", "`") or unquoted for quoted, unquoted in steps)
