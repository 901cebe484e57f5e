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

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from hedgerow.core import types as kinds
from hedgerow.core.errors import assert_never
from hedgerow.core.types import Type
from hedgerow.core.values import NAN, Value, canonical, date_text, timestamp_text

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

    >>> text(Compare(col("price"), "<", lit(Decimal("0.50"))))
    'price < 0.5'
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


# --- canonical text = Spark SQL -------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Words Spark reserves in ANSI mode, or would read as something else than a column where we print them.
_RESERVED = frozenset(
    """
    all and anti any array as at authorization between binary both by case cast check collate column
    constraint create cross cube current_date current_time current_timestamp current_user date day deallocate
    decimal default distinct drop else end escape except exists extract false fetch filter for foreign from
    full grant group grouping having hour in inner insert intersect interval into is join lateral leading left
    like map minute minus month natural not null offset on only or order outer overlaps primary references
    right select semi session_user set some struct table then time timestamp to trailing true union unique
    unknown user using values when where with within year
    """.split()  # noqa: SIM905
)


def quote_name(name: str) -> str:
    if _PLAIN.match(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def quote_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@lru_cache(maxsize=1 << 16)
def term_text(term: Term) -> str:
    match term:
        case Column(path):
            return ".".join(quote_name(part) for part in path)
        case Cast(column, type_):
            return f"CAST({term_text(column)} AS {str(type_).upper()})"
        case Expr(sql):
            return sql
    assert_never(term)


def literal_text(literal: Literal) -> str:
    value = literal.value
    match literal.kind:
        case kinds.INT:
            return str(value)
        case kinds.DECIMAL:
            whole, _, fraction = format(value, "f").partition(".")
            return f"{whole}.{fraction.rstrip('0') or '0'}"  # 5.0, not 5: Spark reads the type off the text
        case kinds.FLOAT if value is NAN:
            return "double('NaN')"
        case kinds.FLOAT if value in (float("inf"), float("-inf")):
            return f"double('{'-' if value < 0 else ''}Infinity')"
        case kinds.FLOAT:
            return f"{value!r}D"
        case kinds.STRING:
            return quote_string(value)
        case kinds.BINARY:
            return f"X'{value.hex().upper()}'"
        case kinds.BOOLEAN:
            return "TRUE" if value else "FALSE"
        case kinds.DATE:
            return f"DATE '{date_text(value)}'"
        case kinds.TIMESTAMP:
            return f"TIMESTAMP_LTZ '{timestamp_text(value)} UTC'"
        case kinds.TIMESTAMP_LOCAL:
            return f"TIMESTAMP '{timestamp_text(value)}'"
        case kinds.TIMESTAMP_NTZ:
            return f"TIMESTAMP_NTZ '{timestamp_text(value)}'"
    raise ValueError(f"a literal has no kind {literal.kind!r}")


@lru_cache(maxsize=1 << 16)
def text(p: Predicate) -> str:
    """The canonical text: equal texts, equal meaning; `rewrite.normalise` brings more predicates to one text."""
    match p:
        case Const(value):
            return {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}[value]
        case Compare(term, op, literal):
            return f"{term_text(term)} {op} {literal_text(literal)}"
        case CompareTerms(left, op, right):
            return f"{term_text(left)} {op} {term_text(right)}"
        case In(term, ()):
            return f"{term_text(term)} <> {term_text(term)}"  # even NaN equals itself in Spark
        case In(term, literals):
            return f"{term_text(term)} IN ({', '.join(map(literal_text, literals))})"
        case Prefix(term, prefix):
            return f"startswith({term_text(term)}, {quote_string(prefix)})"
        case IsNull(term):
            return f"{term_text(term)} IS NULL"
        case SemiJoin(key, table, other_key, inner):
            where = "" if inner == TRUE else f" WHERE {text(inner)}"
            return f"{term_text(key)} IN (SELECT {term_text(other_key)} FROM {table}{where})"
        case Opaque(sql):
            return f"({sql})"
        case Not(IsNull(term)):
            return f"{term_text(term)} IS NOT NULL"
        case Not(In(term, literals)) if literals:
            return f"{term_text(term)} NOT IN ({', '.join(map(literal_text, literals))})"
        case Not(child):
            return f"NOT ({text(child)})"
        case And(kids):
            return " AND ".join(f"({text(k)})" if isinstance(k, Or) else text(k) for k in kids) or "TRUE"
        case Or(kids):
            return " OR ".join(f"({text(k)})" if isinstance(k, And) else text(k) for k in kids) or "FALSE"
    assert_never(p)
