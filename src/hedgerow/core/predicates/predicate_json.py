"""Convert terms and predicates, and dataclasses that contain them, to plain JSON values and back, without loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates import nodes
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import Literal, Predicate
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, canonical

_NODES = (
    *(nodes.Column, nodes.Cast, nodes.Expr, nodes.Const, nodes.Compare, nodes.CompareTerms, nodes.In),
    *(nodes.Prefix, nodes.Like, nodes.IsNull, nodes.Opaque, nodes.Not, nodes.And, nodes.Or),
)


def encode(node: Any) -> dict[str, Any]:
    """Return the JSON value of a predicate, a term, or another dataclass of such and of plain values.

    >>> encode(nodes.IsNull(nodes.col("x")))
    {'node': 'IsNull', 'term': {'node': 'Column', 'path': ['x']}}
    """
    return {"node": type(node).__name__, **{f.name: _to_json(getattr(node, f.name)) for f in fields(node)}}


def decode(value: object, others: Iterable[type[Any]] = ()) -> Any:
    """Return the node that `encode` wrote, or one of these other classes; raise FormatError for any other value."""
    classes = {node.__name__: node for node in (*_NODES, *others)}
    try:
        node = _from_json(value, classes)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise FormatError(f"this is not a predicate that Hedgerow wrote: {value!r}") from error
    if type(node).__name__ not in classes:
        raise FormatError(f"this is not a predicate that Hedgerow wrote: {value!r}")
    return node


def decode_predicate(value: object) -> Predicate:
    node = decode(value)
    if not isinstance(node, Predicate):
        raise FormatError(f"this is a term, not a predicate: {value!r}")
    return node


def _to_json(value: Any) -> Any:
    match value:
        case tuple():
            return [_to_json(v) for v in value]
        case Literal(kind, v):
            return {"literal": kind, "value": _literal_to_json(kind, v)}
        case Type():
            return {"type": str(value)}
    return encode(value) if is_dataclass(value) else value


def _literal_to_json(kind: str, value: Any) -> Any:
    match kind:
        case kinds.DECIMAL:
            return str(value)
        case kinds.FLOAT:
            return "NaN" if value is NAN else value.hex()
        case kinds.BINARY:
            return value.hex()
    return value


def _from_json(value: Any, classes: Mapping[str, type[Any]]) -> Any:
    match value:
        case list():
            return tuple(_from_json(v, classes) for v in value)
        case {"literal": str() as kind, "value": v}:
            return Literal(kind, canonical(kind, _literal_from_json(kind, v)))
        case {"type": str() as name}:
            return Type.parse(name)
        case {"node": str() as name}:
            return classes[name](**{str(key): _from_json(v, classes) for key, v in value.items() if key != "node"})
    return value


def _literal_from_json(kind: str, value: Any) -> Any:
    match kind:
        case kinds.DECIMAL:
            return Decimal(value)
        case kinds.FLOAT:
            return NAN if value == "NaN" else float.fromhex(value)
        case kinds.BINARY:
            return bytes.fromhex(value)
    return value
