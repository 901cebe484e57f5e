"""Terms and predicates as small frozen trees, and the one canonical text that is their identity.

A predicate is TRUE, FALSE or NULL on a row. The text of a predicate is also its Spark SQL, so what
Python reasons about and what Spark evaluates cannot drift apart.

        And                     shipped >= DATE '1995-03-01' AND (mode IN ('AIR', 'RAIL') OR (note LIKE '%x%'))
       /   \\
    Compare  Or
            /  \\
          In   Opaque
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, Value, canonical

# --- terms: something every row has a value for ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside struct columns: `("address", "city")`."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(column AS type)`, kept apart from other expressions because some casts keep the order."""

    column: Column
    type: Type


@dataclass(frozen=True, slots=True)
class Expr:
    """Any other deterministic expression, as normalised Spark SQL; only Spark knows what it means."""

    sql: str
    columns: tuple[Column, ...]
    type: Type | None = field(default=None, compare=False)


Term: TypeAlias = Column | Cast | Expr


# --- predicates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A typed constant, never NULL; `value` is in the canonical form of `core/values`."""

    kind: str
    value: Value


@dataclass(frozen=True, slots=True)
class Const:
    """TRUE, FALSE or NULL, whatever the row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Compare:
    """`term op literal` with op one of = <> < <= > >= ; NULL where the term is NULL."""

    term: Term
    op: str
    literal: Literal


@dataclass(frozen=True, slots=True)
class CompareTerms:
    """`left op right` for two terms of comparable types; NULL where either is NULL."""

    left: Term
    op: str
    right: Term


@dataclass(frozen=True, slots=True)
class In:
    """`term IN (literals)`; the empty list is FALSE for values and NULL for NULL."""

    term: Term
    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """`startswith(term, prefix)`, that is LIKE 'prefix%'."""

    term: Term
    prefix: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE or FALSE, never NULL."""

    term: Term


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """`key IN (SELECT other_key FROM table WHERE predicate)`."""

    key: Column
    table: str
    other_key: Column
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class Opaque:
    """A boolean expression that only Spark can evaluate: LIKE '%x%', a regex, a UDF, ..."""

    sql: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Not:
    child: Predicate


@dataclass(frozen=True, slots=True)
class And:
    children: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    children: tuple[Predicate, ...]


Predicate: TypeAlias = Const | Compare | CompareTerms | In | Prefix | IsNull | SemiJoin | Opaque | Not | And | Or
ATOMS = (Const, Compare, CompareTerms, In, Prefix, IsNull, SemiJoin, Opaque)

TRUE, FALSE, NULL = Const(True), Const(False), Const(None)

NEGATED_OP = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED_OP = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


# --- short constructors ---------------------------------------------------------------------------


def col(name: str) -> Column:
    """A column by its dotted name; build `Column(("a.b",))` for a name that holds a dot itself."""
    return Column(tuple(name.split(".")))


def lit(value: object, kind: str | None = None) -> Literal:
    """A literal from a Python value; the kind follows the Python type unless it is given.

    >>> lit(Decimal("0.50"))
    Literal(kind='decimal', value=Decimal('0.5'))
    """
    kind = kind or _kind_of(value)
    return Literal(kind, canonical(kind, value))


def _kind_of(value: object) -> str:
    from datetime import date, datetime

    if isinstance(value, datetime):
        return kinds.TIMESTAMP if value.tzinfo else kinds.TIMESTAMP_NTZ
    for python, kind in (
        (bool, kinds.BOOLEAN),
        (int, kinds.INT),
        (Decimal, kinds.DECIMAL),
        (float, kinds.FLOAT),
        (type(NAN), kinds.FLOAT),
        (str, kinds.STRING),
        (bytes, kinds.BINARY),
        (date, kinds.DATE),
    ):
        if isinstance(value, python):
            return kind
    raise ValueError(f"no literal can be made of {value!r}")


def conjunction(*children: Predicate) -> Predicate:
    kept = tuple(c for c in children if c != TRUE)
    return kept[0] if len(kept) == 1 else And(kept) if kept else TRUE


def disjunction(*children: Predicate) -> Predicate:
    kept = tuple(c for c in children if c != FALSE)
    return kept[0] if len(kept) == 1 else Or(kept) if kept else FALSE


# --- walking --------------------------------------------------------------------------------------


def children(p: Predicate) -> tuple[Predicate, ...]:
    match p:
        case And(kids) | Or(kids):
            return kids
        case Not(kid):
            return (kid,)
    return ()


def walk(p: Predicate) -> Iterator[Predicate]:
    """The predicate and all below it, parents first."""
    yield p
    for child in children(p):
        yield from walk(child)


def atoms(p: Predicate) -> Iterator[Predicate]:
    return (node for node in walk(p) if isinstance(node, ATOMS))


def terms(p: Predicate) -> frozenset[Term]:
    """The terms whose values are compared; those inside opaque text are not known as terms."""
    found: set[Term] = set()
    for atom in atoms(p):
        match atom:
            case Compare(term=t) | In(term=t) | Prefix(term=t) | IsNull(term=t):
                found.add(t)
            case CompareTerms(left=a, right=b):
                found |= {a, b}
            case SemiJoin(key=k):
                found.add(k)
    return frozenset(found)


def columns(p: Predicate) -> frozenset[Column]:
    """Every column a row needs for this predicate to be evaluated."""
    found: set[Column] = set()
    for term in terms(p):
        match term:
            case Column():
                found.add(term)
            case Cast(column=c):
                found.add(c)
            case Expr(columns=cs):
                found.update(cs)
    for atom in atoms(p):
        if isinstance(atom, Opaque):
            found.update(atom.columns)
    return frozenset(found)
