"""Reads the conditions that the optimizer rule sends as predicates.

A condition compares columns and indexed expressions with literals in Spark's internal form. No setting changes its
meaning. Any other part of a condition is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import count
from typing import Any

from hedgerow.core.errors import SchemaError, WorkloadError
from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import bind
from hedgerow.core.predicates.nodes import (
    FLIPPED_OP,
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Const,
    Expr,
    Feature,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
    atoms_of,
)
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, Value, canonical
from hedgerow.spark import wire


@dataclass
class ConditionReader:
    """A reader of conditions of a plan as predicates; a number in a condition is a place in `items`."""

    schema: Mapping[str, Type]
    items: Sequence[Feature]
    is_exact: bool = False  # True if column names are case-sensitive
    struct: str | None = None  # the struct column that has the conditions' columns as fields
    unknown: Any = field(default_factory=count)

    @cached_property
    def names(self) -> dict[str, str]:
        return {name if self.is_exact else name.lower(): name for name in self.schema}

    def read(self, condition: wire.Condition) -> Predicate:
        match condition:
            case wire.And(parts):
                return And(tuple(map(self.read, parts)))
            case wire.Or(parts):
                return Or(tuple(map(self.read, parts)))
            case wire.Not(part):
                return Not(self.read(part))
        try:
            bound = bind(self._atom(condition), self.schema)
        except (SchemaError, WorkloadError, ValueError):
            return self._unknown()
        is_known = isinstance(condition, wire.Indexed) or not any(isinstance(a, Opaque) for a in atoms_of(bound))
        return bound if is_known else self._unknown()

    def typed_term(self, side: wire.Side) -> TypedTerm:
        """Return a term with its type; raise HedgerowError or ValueError if the index cannot know it."""
        bound = bind(IsNull(self._term(side)), self.schema)
        if not isinstance(bound, IsNull) or isinstance(bound.term, Cast) or getattr(side, "cast", None) is not None:
            raise ValueError("the index does not know it")
        return TypedTerm(bound.term, Type.parse(side.type))

    def _unknown(self) -> Opaque:
        """Return a new opaque condition with each call, because two unknown conditions may differ."""
        return Opaque(f"unknown {next(self.unknown)}", ())

    def _atom(self, condition: wire.Condition) -> Predicate:
        match condition:
            case wire.Constant(value):
                return Const(value)
            case wire.Indexed(number):
                item = self.items[number]
                if isinstance(item, Predicate):
                    return item
            case wire.IsNull(term):
                return IsNull(self._term(term))
            case wire.In(term, kind, texts):
                return In(self._term(term), tuple(_literal(wire.Value(text, kind)) for text in texts))
            case wire.Compare(left, "starts" | "ends" | "contains" | "like" as op, wire.Value(text, "string")):
                return Prefix(self._term(left), text) if op == "starts" else _search(op, self._term(left), text)
            case wire.Compare(left, op, wire.Value() as literal):
                return _comparison(self._term(left), op, _literal(literal))
            case wire.Compare(wire.Value() as literal, op, right) if op in FLIPPED_OP or op == "<=>":
                return _comparison(self._term(right), FLIPPED_OP.get(op, op), _literal(literal))
            case wire.Compare(left, op, right) if op in FLIPPED_OP:
                return CompareTerms(self._term(left), op, self._term(right))
        raise ValueError("unknown")

    def _term(self, side: wire.Side) -> Term:
        """Return a column of the table that the query reads with the same type, or an expression of the index."""
        kind = Type.parse(side.type)
        match side:
            case wire.Expression(number):
                item = self.items[number]
                if isinstance(item, Predicate):
                    raise ValueError("unknown")
                return replace(item, type=kind) if isinstance(item, Expr) else item
            case wire.Column(path, _, cast):
                column = Column((*(() if self.struct is None else (self.struct,)), *path))
                name = self.names.get(term_text(column) if self.is_exact else term_text(column).lower())
                if name is None or self.schema[name] != kind:
                    raise ValueError("the query sees another column")
                return column if cast is None else Cast(column, Type.parse(cast))
        raise ValueError("a literal on both sides")


def _search(word: str, term: Term, text: str) -> Like:
    """Return LIKE, also for Spark's other forms of it; on a column, it has the same meaning in every session."""
    if not isinstance(term, Column):
        raise ValueError("unknown")
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    pattern = {"ends": f"%{escaped}", "contains": f"%{escaped}%"}.get(word, text)
    return Like(term, pattern)


def _comparison(term: Term, op: str, literal: Literal) -> Predicate:
    if op == "<=>":  # TRUE or FALSE, never NULL
        return And((Compare(term, "=", literal), Not(IsNull(term))))
    if op not in FLIPPED_OP:
        raise ValueError("unknown")
    return Compare(term, op, literal)


def value_text(kind: str, value: Value) -> str | None:
    """Return Spark's internal form of a value, as `wire.Value` has it; None stands for NULL.

    >>> value_text("decimal", Decimal("1E+2")), value_text("boolean", True), value_text("binary", b"a")
    ('100', 'true', '61')
    """
    match kind:
        case _ if value is None:
            return None
        case kinds.DECIMAL:
            return format(value, "f")
        case kinds.BOOLEAN:
            return str(value).lower()
        case kinds.BINARY:
            return bytes(value).hex()
        case kinds.FLOAT:
            return "NaN" if value is NAN else repr(value).replace("inf", "Infinity")
    return str(value)


def _literal(of: wire.Value) -> Literal:
    """Return a literal from Spark's internal form of the value: days, microseconds, nanoseconds, digits."""
    kind, value = Type.parse(of.type).kind, of.text
    match kind:
        case kinds.INT | kinds.DATE | kinds.TIME | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ:
            return Literal(kind, canonical(kind, int(value)))
        case kinds.FLOAT:
            return Literal(kind, canonical(kind, float(value)))
        case kinds.DECIMAL:
            return Literal(kind, canonical(kind, Decimal(value)))
        case kinds.BOOLEAN:
            return Literal(kind, value == "true")
        case kinds.BINARY:
            return Literal(kind, bytes.fromhex(value))
        case kinds.STRING:
            return Literal(kind, value)
    raise ValueError("unknown")
