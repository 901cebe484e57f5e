"""Terms and predicates as plain JSON values and back, exactly."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

from hedgerow.core.errors import FormatError
from hedgerow.core.predicates import nodes as expr
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import Literal, Predicate, Term
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, canonical

_NODES: dict[str, type[Any]] = {
    node.__name__: node
    for node in (
        *(
            expr.Column,
            expr.Cast,
            expr.Expr,
            expr.Const,
            expr.Compare,
            expr.CompareTerms,
            expr.In,
            expr.Prefix,
        ),
        *(expr.IsNull, expr.SemiJoin, expr.Opaque, expr.Not, expr.And, expr.Or),
    )
}


def encode(node: Predicate | Term) -> dict[str, Any]:
    """The JSON value of a predicate or term.

    >>> encode(expr.IsNull(expr.col("x")))
    {'node': 'IsNull', 'term': {'node': 'Column', 'path': ['x']}}
    """
    return {"node": type(node).__name__, **{f.name: _out(getattr(node, f.name)) for f in fields(node)}}


def decode(value: object) -> Any:
    """The node that `encode` wrote; FormatError for anything else."""
    try:
        found = _in(value)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise FormatError(f"this is not a predicate that Hedgerow wrote: {value!r}") from error
    if type(found).__name__ not in _NODES:
        raise FormatError(f"this is not a predicate that Hedgerow wrote: {value!r}")
    return found


def decode_predicate(value: object) -> Predicate:
    found = decode(value)
    if not isinstance(found, Predicate):
        raise FormatError(f"this is a term, not a predicate: {value!r}")
    return found


def _out(value: Any) -> Any:
    match value:
        case tuple():
            return [_out(v) for v in value]
        case Literal(kind, v):
            return {"literal": kind, "value": _literal_out(kind, v)}
        case Type():
            return {"type": str(value)}
    return encode(value) if type(value).__name__ in _NODES else value


def _literal_out(kind: str, value: Any) -> Any:
    match kind:
        case kinds.DECIMAL:
            return str(value)
        case kinds.FLOAT:
            return "NaN" if value is NAN else value.hex()
        case kinds.BINARY:
            return value.hex()
    return value


def _in(value: Any) -> Any:
    match value:
        case list():
            return tuple(_in(v) for v in value)
        case {"literal": str() as kind, "value": v}:
            return Literal(kind, canonical(kind, _literal_in(kind, v)))
        case {"type": str() as name}:
            return Type.parse(name)
        case {"node": str() as name}:
            return _NODES[name](**{str(key): _in(v) for key, v in value.items() if key != "node"})
    return value


def _literal_in(kind: str, value: Any) -> Any:
    match kind:
        case kinds.DECIMAL:
            return Decimal(value)
        case kinds.FLOAT:
            return NAN if value == "NaN" else float.fromhex(value)
        case kinds.BINARY:
            return bytes.fromhex(value)
    return value
