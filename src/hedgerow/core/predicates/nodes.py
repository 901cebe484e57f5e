"""Terms and predicates as small frozen trees.

A term has a value on every row. A predicate is TRUE, FALSE or NULL on every row.

        And                     shipped >= DATE '1995-03-01' AND (mode IN ('AIR', 'RAIL') OR (note LIKE '%x%'))
       /   \\
    Compare  Or
            /  \\
          In   Like
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, Value, canonical

# --- terms ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside struct columns: `("address", "city")`."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(column AS type)`; a type of its own because some casts keep the order of the column."""

    column: Column
    type: Type


@dataclass(frozen=True, slots=True)
class Expr:
    """Any other deterministic expression, as normalised Spark SQL; only Spark can evaluate it."""

    sql: str
    columns: tuple[Column, ...]
    type: Type | None = field(default=None, compare=False)


Term: TypeAlias = Column | Cast | Expr


# --- predicates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A typed constant, never NULL; `value` has the canonical form that `values` describes."""

    kind: str
    value: Value


@dataclass(frozen=True, slots=True)
class Const:
    """TRUE, FALSE or NULL on every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Compare:
    """`term op literal`, where op is one of = <> < <= > >= ; NULL where the term is NULL."""

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

    def __hash__(self) -> int:  # the list may be long and is hashed often: only its beginning counts
        return hash((self.term, len(self.literals), self.literals[:4]))


@dataclass(frozen=True, slots=True)
class Prefix:
    """`startswith(term, prefix)`, that is LIKE 'prefix%'."""

    term: Term
    prefix: str


@dataclass(frozen=True, slots=True)
class Like:
    """`term LIKE 'pattern'`, escaped by `\\`; only Spark evaluates it, but the words of an entry may exclude it."""

    term: Term
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """`term IS NULL`: TRUE or FALSE, never NULL."""

    term: Term


@dataclass(frozen=True, slots=True)
class Opaque:
    """A boolean expression that only Spark can evaluate: a regex, a UDF, ..."""

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


Predicate: TypeAlias = Const | Compare | CompareTerms | In | Prefix | Like | IsNull | Opaque | Not | And | Or
Feature: TypeAlias = Term | Predicate  # a value that is computed for every row
ATOMS = (Const, Compare, CompareTerms, In, Prefix, Like, IsNull, Opaque)

TRUE, FALSE, NULL = Const(True), Const(False), Const(None)

NEGATED_OP = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED_OP = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


# --- short constructors ---------------------------------------------------------------------------


def col(name: str) -> Column:
    """Return a column by its dotted name; for a name that itself contains a dot write `Column(("a.b",))`."""
    return Column(tuple(name.split(".")))


def lit(value: object, kind: str | None = None) -> Literal:
    """Return a literal from a Python value; the kind follows from the Python type unless it is given.

    >>> lit(Decimal("0.50"))
    Literal(kind='decimal', value=Decimal('0.50'))
    """
    kind = kind or _kind_of(value)
    return Literal(kind, canonical(kind, value))


def _kind_of(value: object) -> str:
    from datetime import date, datetime, time

    if isinstance(value, datetime):
        return kinds.TIMESTAMP if value.tzinfo else kinds.TIMESTAMP_NTZ
    for python_type, kind in (
        (bool, kinds.BOOLEAN),
        (int, kinds.INT),
        (Decimal, kinds.DECIMAL),
        (float, kinds.FLOAT),
        (type(NAN), kinds.FLOAT),
        (str, kinds.STRING),
        (bytes, kinds.BINARY),
        (date, kinds.DATE),
        (time, kinds.TIME),
    ):
        if isinstance(value, python_type):
            return kind
    raise ValueError(f"{value!r} cannot become a SQL literal")


def conjunction(*children: Predicate) -> Predicate:
    deciding = tuple(c for c in children if c != TRUE)
    return deciding[0] if len(deciding) == 1 else And(deciding) if deciding else TRUE


def disjunction(*children: Predicate) -> Predicate:
    deciding = tuple(c for c in children if c != FALSE)
    return deciding[0] if len(deciding) == 1 else Or(deciding) if deciding else FALSE


# --- walking --------------------------------------------------------------------------------------


def children(p: Predicate) -> tuple[Predicate, ...]:
    match p:
        case And(kids) | Or(kids):
            return kids
        case Not(kid):
            return (kid,)
    return ()


def map_children(p: Predicate, change: Callable[[Predicate], Predicate]) -> Predicate:
    """Return the AND, OR or NOT with its children changed; return an atom unchanged."""
    match p:
        case And(kids):
            return And(tuple(map(change, kids)))
        case Or(kids):
            return Or(tuple(map(change, kids)))
        case Not(kid):
            return Not(change(kid))
    return p


def walk(p: Predicate) -> Iterator[Predicate]:
    """Yield the predicate and all predicates inside it, parents first."""
    yield p
    for child in children(p):
        yield from walk(child)


def atoms_of(p: Predicate) -> Iterator[Predicate]:
    return (node for node in walk(p) if isinstance(node, ATOMS))


def terms_of(p: Predicate) -> frozenset[Term]:
    """Return the terms that the predicate compares; a LIKE and an opaque text compare none."""
    terms: set[Term] = set()
    for atom in atoms_of(p):
        match atom:
            case Compare(term=t) | In(term=t) | Prefix(term=t) | IsNull(term=t):
                terms.add(t)
            case CompareTerms(left=a, right=b):
                terms |= {a, b}
    return frozenset(terms)


def columns_of(p: Predicate) -> frozenset[Column]:
    """Return the columns that the predicate reads, those inside expressions and opaque texts included."""
    columns: set[Column] = set()
    for term in terms_of(p):
        columns |= columns_in(term)
    for atom in atoms_of(p):
        match atom:
            case Like(term=term):
                columns |= columns_in(term)
            case Opaque(columns=cs):
                columns.update(cs)
    return frozenset(columns)


def is_evaluated_by_spark(p: Predicate) -> bool:
    """True if some part of the predicate can only be evaluated by Spark."""
    return any(isinstance(atom, Like | Opaque) for atom in atoms_of(p))


def columns_in(item: Feature) -> frozenset[Column]:
    """Return the columns that a term or a predicate reads."""
    match item:
        case Column():
            return frozenset((item,))
        case Cast(column=column):
            return frozenset((column,))
        case Expr(columns=columns):
            return frozenset(columns)
    return columns_of(item)
