"""Reads the conditions that the optimizer rule sends, from JSON, as predicates.

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
    lit,
)
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import canonical

Json = Mapping[str, Any]


@dataclass
class ConditionReader:
    """A reader of conditions as predicates; a number in a condition is a place in `items`."""

    schema: Mapping[str, Type]
    items: Sequence[Feature]
    is_exact: bool = False  # True if column names are case-sensitive
    struct: str | None = None  # the struct column that has the conditions' columns as fields
    unknown: Any = field(default_factory=count)

    @cached_property
    def names(self) -> dict[str, str]:
        return {name if self.is_exact else name.lower(): name for name in self.schema}

    def read(self, node: Sequence[Any]) -> Predicate:
        word, *rest = node
        match word:
            case "and":
                return And(tuple(map(self.read, rest)))
            case "or":
                return Or(tuple(map(self.read, rest)))
            case "not":
                return Not(self.read(rest[0]))
        try:
            bound = bind(self._atom(word, rest), self.schema)
        except (SchemaError, WorkloadError, ValueError):
            return self._unknown()
        is_known = word == "item" or not any(isinstance(atom, Opaque) for atom in atoms_of(bound))
        return bound if is_known else self._unknown()

    def _unknown(self) -> Opaque:
        """Return a new opaque condition with each call, because two unknown conditions may differ."""
        return Opaque(f"unknown {next(self.unknown)}", ())

    def _atom(self, word: str, rest: Sequence[Any]) -> Predicate:
        match word, rest:
            case "const", [value]:
                return Const(value)
            case "item", [int() as number]:
                item = self.items[number]
                if isinstance(item, Predicate):
                    return item
            case "is", [term]:
                return Compare(self._term(term), "=", lit(True))
            case "null", [term]:
                return IsNull(self._term(term))
            case "not null", [term]:
                return Not(IsNull(self._term(term)))
            case "in", [term, *literals]:
                return In(self._term(term), tuple(map(_literal, literals)))
            case "starts", [term, {"lit": str() as prefix}]:
                return Prefix(self._term(term), prefix)
            case "ends" | "contains" | "like", [term, {"lit": str() as text, "type": "string"}] if "lit" not in term:
                return _search(word, self._term(term), text)
            case _, [term, {"lit": _} as literal] if "lit" not in term:
                return _comparison(self._term(term), word, _literal(literal))
            case _, [{"lit": _} as literal, term] if (word in FLIPPED_OP or word == "<=>") and "lit" not in term:
                return _comparison(self._term(term), FLIPPED_OP.get(word, word), _literal(literal))
            case _, [left, right] if word in FLIPPED_OP and "lit" not in left and "lit" not in right:
                return CompareTerms(self._term(left), word, self._term(right))
        raise ValueError("unknown")

    def _term(self, node: Json) -> Term:
        """Return a column of the table that the query reads with the same type, or an expression of the index."""
        kind = Type.parse(node["type"])
        if "item" in node:
            item = self.items[node["item"]]
            if isinstance(item, Predicate):
                raise ValueError("unknown")
            return replace(item, type=kind) if isinstance(item, Expr) else item
        column = Column((*(() if self.struct is None else (self.struct,)), *node["col"]))
        name = self.names.get(term_text(column) if self.is_exact else term_text(column).lower())
        if name is None or self.schema[name] != kind:
            raise ValueError("the query sees another column")
        return Cast(column, Type.parse(node["cast"])) if "cast" in node else column


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


def _literal(node: Mapping[str, Any]) -> Literal:
    """Return a literal from Spark's internal form of the value: days, microseconds, nanoseconds, digits."""
    kind, value = Type.parse(node["type"]).kind, node["lit"]
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
