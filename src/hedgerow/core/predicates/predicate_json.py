"""Convert terms and predicates, and dataclasses that contain them, to plain JSON values and back, without loss."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates import nodes
from hedgerow.core.predicates.nodes import Literal, Predicate
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, canonical

_NODES = (
    *(nodes.Column, nodes.Cast, nodes.Expr, nodes.Const, nodes.Compare, nodes.CompareTerms, nodes.In),
    *(nodes.Prefix, nodes.Like, nodes.IsNull, nodes.Opaque, nodes.Not, nodes.And, nodes.Or),
)
_MARKS = {"node", "literal", "type", "decimal", "binary", "float", "plain"}  # each marks one kind of value


def encode(node: Any) -> dict[str, Any]:
    """Return the JSON value of a predicate, a term, or another dataclass or named tuple of such and of plain values.

    >>> encode(nodes.IsNull(nodes.col("x")))
    {'node': 'IsNull', 'term': {'node': 'Column', 'path': ['x']}}
    """
    names = getattr(node, "_fields", None) or [f.name for f in fields(node)]
    return {"node": type(node).__name__, **{name: _to_json(getattr(node, name)) for name in names}}


def decode(value: object, others: Sequence[type[Any]] = ()) -> Any:
    """Return the predicate or term that `encode` wrote, or an object of one of the others; else raise FormatError."""
    classes = {node.__name__: node for node in (*_NODES, *others)}
    try:
        node = _from_json(value, classes)
        if not isinstance(node, tuple(others) or _NODES):
            raise TypeError("another class")
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise FormatError(f"this is not what Hedgerow wrote: {reprlib.repr(value)}") from error
    return node


def decode_predicate(value: object) -> Predicate:
    node = decode(value)
    if not isinstance(node, Predicate):
        raise FormatError(f"this is a term, not a predicate: {reprlib.repr(value)}")
    return node


def _to_json(value: Any) -> Any:
    match value:
        case tuple() if not hasattr(value, "_fields"):
            return [_to_json(v) for v in value]
        case Literal(kind, v):
            return {"literal": kind, "value": _to_json(v)}
        case Type():
            return {"type": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"binary": value.hex()}
        case float() if math.isinf(value):
            return {"float": str(value)}
        case dict() if not _MARKS.isdisjoint(value):
            return {"plain": value}
    if value is NAN:
        return {"float": "nan"}
    return encode(value) if is_dataclass(value) or isinstance(value, tuple) else value


def _from_json(value: Any, classes: Mapping[str, type[Any]]) -> Any:
    match value:
        case list():
            return tuple(_from_json(v, classes) for v in value)
        case {"node": str() as name}:
            return classes[name](**{str(key): _from_json(v, classes) for key, v in value.items() if key != "node"})
        case {"plain": dict() as plain}:
            return plain
        case {"literal": str() as kind, "value": v}:
            return Literal(kind, canonical(kind, _from_json(v, classes)))
        case {"type": str() as name}:
            return Type.parse(name)
        case {"decimal": str() as digits}:
            return Decimal(digits)
        case {"binary": str() as digits}:
            return bytes.fromhex(digits)
        case {"float": str() as name}:
            return NAN if name == "nan" else float(name)
    return value
