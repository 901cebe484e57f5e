"""Give a predicate the column names and types of a schema, so that literals compare the way Spark compares them.

Spark casts one side of a comparison to a common type. Where that is the literal, the literal is cast here. Where it
is the column and the cast keeps the order (an integer to a double, a timestamp to its date), the comparison becomes
one about the bare column. Everything else turns opaque: Spark alone knows what it means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, floor
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hedgerow.core.errors import SchemaError
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import (
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    SemiJoin,
    Term,
    columns,
    disjunction,
)
from hedgerow.core.predicates.schema import Schema, Session, path_of
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN, Value

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL_DIGITS = _DIGITS | {"bigint": 20}  # of the decimal type that Spark takes for an integer
_DAY = 86_400_000_000
_LEAST_LONG, _MOST_LONG = -(2**63), 2**63 - 1


def bind(p: Predicate, schema: Schema, session: Session | None = None) -> Predicate:
    """The predicate about the schema's columns; SchemaError names a column the schema lacks.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> schema = as_schema({"Shipped": "date", "quantity": "bigint"})
    >>> text(bind(Compare(col("shipped"), "<=", lit("1995-03-31")), schema))
    "Shipped < DATE '1995-04-01'"
    >>> text(bind(Compare(col("quantity"), ">", lit(Decimal("2.5"))), schema))
    'quantity >= 3'
    """
    return _Binder(schema, session or Session()).predicate(p)


class _Binder:
    def __init__(self, schema: Schema, session: Session) -> None:
        self.schema = schema
        self.names = {name.lower(): name for name in schema}
        self.zone = _zone(session.zone)

    # --- names ---

    def column(self, column: Column) -> Column:
        """The schema's spelling, as far down the path as the schema goes."""
        path = column.path
        for n in range(len(path), 0, -1):
            found = self.names.get(term_text(Column(path[:n])).lower())
            if found is not None:
                return Column((*path_of(found), *path[n:]))
        raise SchemaError(f"there is no column {term_text(column)}")

    def term(self, term: Term) -> Term:
        match term:
            case Column():
                return self.column(term)
            case Cast(column, type_):
                return Cast(self.column(column), type_)
            case Expr(sql, cols, type_):
                return Expr(sql, tuple(map(self.column, cols)), type_)

    def type_of(self, term: Term) -> Type:
        match term:
            case Column():
                return self.schema.get(term_text(term), Type(kinds.OTHER))
            case Cast(_, type_):
                return type_
        return term.type or Type(kinds.OTHER)

    # --- predicates ---

    def predicate(self, p: Predicate) -> Predicate:
        match p:
            case And(kids):
                return And(tuple(map(self.predicate, kids)))
            case Or(kids):
                return Or(tuple(map(self.predicate, kids)))
            case Not(kid):
                return Not(self.predicate(kid))
            case IsNull(term):
                return IsNull(self._plain(self.term(term)))
            case Compare(term, op, literal):
                bound = Compare(self.term(term), op, literal)
                return self._compare(bound.term, op, literal) or _opaque(bound)
            case In(term, literals):
                return self._in(In(self.term(term), literals))
            case Prefix(term, prefix):
                found = self._plain(self.term(term))
                known = self.type_of(found).kind == kinds.STRING
                return Prefix(found, prefix) if known else _opaque(Prefix(self.term(term), prefix))
            case CompareTerms(left, op, right):
                a, b = self._plain(self.term(left)), self._plain(self.term(right))
                if _same_order(self.type_of(a), self.type_of(b)):
                    return CompareTerms(a, op, b)
                return _opaque(CompareTerms(self.term(left), op, self.term(right)))
            case SemiJoin(key, table, other_key, inner):
                return SemiJoin(self.column(key), table, other_key, inner)
            case Opaque(sql, cols):
                return Opaque(sql, tuple(map(self.column, cols)))
        return p

    def _in(self, p: In) -> Predicate:
        mixed = {literal.kind for literal in p.literals}
        type_ = self.type_of(p.term)
        # Spark brings a list and the column to one common type: only where that changes no comparison we go on.
        if len(mixed) > 1 and not mixed <= {kinds.INT, kinds.DECIMAL}:
            return _opaque(p)
        if kinds.STRING in mixed and type_.kind in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ, kinds.FLOAT):
            return _opaque(p)  # outside ANSI mode the column is cast to text: 5.0 is not in ('5')
        numbers = type_.kind in (kinds.INT, kinds.DECIMAL) and mixed <= {kinds.INT, kinds.DECIMAL}
        if numbers and not _fit(type_, map(_listed_digits, p.literals)):
            return _opaque(p)
        found = [self._compare(p.term, "=", literal) for literal in p.literals]
        if None in found:
            return _opaque(p)
        return disjunction(*(f for f in found if f is not None)) if found else p

    def _plain(self, term: Term) -> Term:
        """The bare column where a cast changes neither order nor NULLs."""
        if isinstance(term, Cast) and _widens(self.type_of(term.column), term.type):
            return term.column
        return term

    def _compare(self, term: Term, op: str, literal: Literal) -> Predicate | None:
        term = self._plain(term)
        type_ = self.type_of(term)
        if isinstance(term, Cast):
            found = self._uncast(term, op, literal)
            if found is not None:
                return found
        match type_.kind, literal.kind:
            case kinds.INT | kinds.DECIMAL, kinds.INT | kinds.DECIMAL:
                return _exact(term, type_, op, Decimal(literal.value))
            case kinds.INT | kinds.DECIMAL, kinds.FLOAT:
                return _as_double(term, type_, op, literal.value)
            case kinds.INT | kinds.DECIMAL | kinds.FLOAT, kinds.STRING:
                return _as_number(term, type_, op, literal.value)
            case kinds.FLOAT, kinds.INT | kinds.DECIMAL | kinds.FLOAT:
                return _float(term, type_, op, literal)
            case kinds.DATE, kinds.DATE | kinds.STRING:
                days = literal.value if literal.kind == kinds.DATE else _parse_date(literal.value)
                return None if days is None else _whole(term, kinds.DATE, op, days)
            case kinds.DATE, kinds.TIMESTAMP | kinds.TIMESTAMP_LOCAL:
                return self._date_against_instant(term, op, literal)
            case kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ, _:
                value = self._timestamp(type_.kind, literal)
                return None if value is None else Compare(term, op, Literal(type_.kind, value))
            case kinds.BOOLEAN, kinds.BOOLEAN if op == "<>":
                return Compare(term, "=", Literal(kinds.BOOLEAN, not literal.value))
            case a, b if a == b and a != kinds.OTHER:
                return Compare(term, op, literal)
            case kinds.BOOLEAN, kinds.STRING if literal.value.lower() in ("true", "false"):
                return Compare(term, op, Literal(kinds.BOOLEAN, literal.value.lower() == "true"))
        return None

    def _uncast(self, term: Cast, op: str, literal: Literal) -> Predicate | None:
        """Casts that keep the order but join neighbours: number to double, timestamp to date."""
        column, source = term.column, self.type_of(term.column)
        match source.kind, term.type.kind:
            case kinds.INT | kinds.DECIMAL, kinds.FLOAT if term.type.name == "double":
                if literal.kind in (kinds.INT, kinds.DECIMAL, kinds.FLOAT):
                    value = literal.value if literal.value is NAN else float(literal.value)
                    return _as_double(column, source, op, value)
            case kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ, kinds.DATE if literal.kind in (
                kinds.DATE,
                kinds.STRING,
            ):
                days = literal.value if literal.kind == kinds.DATE else _parse_date(literal.value)
                if days is None:
                    return None
                start, end = self._midnight(source.kind, days), self._midnight(source.kind, days + 1)
                if start is not None and end is not None:
                    return _between(column, op, Literal(source.kind, start), Literal(source.kind, end))
        return None

    # --- time ---

    def _midnight(self, kind: str, days: int) -> int | None:
        return days * _DAY if kind == kinds.TIMESTAMP_NTZ else self._instant(days * _DAY)

    def _instant(self, local: int) -> int | None:
        """Microseconds since the epoch of a wall-clock time in the session's zone, if it is one, and only one."""
        if self.zone is timezone.utc:
            return local
        if self.zone is None or not -2_208_988_800_000_000 < local < 4_102_444_800_000_000:  # 1900 to 2100
            return None
        wall = datetime(1970, 1, 1) + timedelta(microseconds=local)
        first, second = (wall.replace(tzinfo=self.zone, fold=fold).utcoffset() for fold in (0, 1))
        return None if first != second or first is None else local - first // timedelta(microseconds=1)

    def _timestamp(self, kind: str, literal: Literal) -> int | None:
        """The literal as a value of a timestamp column of this kind."""
        zoned = kind == kinds.TIMESTAMP
        match literal.kind:
            case kinds.TIMESTAMP:
                return literal.value if zoned else None
            case kinds.TIMESTAMP_LOCAL:  # beside an NTZ column Spark casts the column to the session's zone
                return self._instant(literal.value) if zoned or self.zone is timezone.utc else None
            case kinds.TIMESTAMP_NTZ:
                return self._instant(literal.value) if zoned else literal.value
            case kinds.DATE:
                return self._midnight(kind, literal.value)
            case kinds.STRING:
                local = parse_timestamp(literal.value)
                return None if local is None else self._instant(local) if zoned else local
        return None

    def _date_against_instant(self, term: Term, op: str, literal: Literal) -> Predicate | None:
        """The date is cast to its midnight: compare with the first midnights at and after the instant."""
        if literal.kind == kinds.TIMESTAMP_LOCAL or self.zone is timezone.utc:
            wall = literal.value
        else:
            return None
        days, rest = divmod(wall, _DAY)
        if any(self._instant(d * _DAY) is None for d in (days, days + 1)) or self._instant(wall) is None:
            return None
        at_or_after = days + (rest > 0)
        return _between(term, op, Literal(kinds.DATE, at_or_after), Literal(kinds.DATE, days + 1))


# --- numbers --------------------------------------------------------------------------------------


def _bounded(term: Term, op: str, literal: Literal) -> Predicate:
    """A comparison, but none of an integer with more than 64 bits: Spark says TRUE or FALSE to it for NULL, too."""
    if literal.kind != kinds.INT or _LEAST_LONG <= literal.value <= _MOST_LONG:
        return Compare(term, op, literal)
    above = literal.value > 0
    holds = {"<": above, "<=": above, ">": not above, ">=": not above, "=": False, "<>": True}[op]
    return Not(In(term, ())) if holds else In(term, ())


def _whole(term: Term, kind: str, op: str, value: int | Decimal) -> Predicate:
    """Against whole numbers and dates every bound is half open, so that one set of values has one text."""
    up, down, exact = ceil(value), floor(value), value == floor(value)
    match op:
        case "<":
            return _bounded(term, "<", Literal(kind, up))
        case "<=":
            return _bounded(term, "<", Literal(kind, down + 1))
        case ">":
            return _bounded(term, ">=", Literal(kind, down + 1))
        case ">=":
            return _bounded(term, ">=", Literal(kind, up))
        case "=":
            return _bounded(term, "=", Literal(kind, down)) if exact else In(term, ())
    return _bounded(term, "<>", Literal(kind, down)) if exact else Not(In(term, ()))


def _exact(term: Term, type_: Type, op: str, value: Decimal) -> Predicate | None:
    """Integers and decimals compare exactly as long as Spark's common decimal type has all their digits."""
    if not _fit(type_, (_digits(value),)):
        return None
    if type_.kind == kinds.INT:
        if op not in ("=", "<>") and not _LEAST_LONG <= value <= _MOST_LONG:
            return None  # Spark answers without looking at the column, for NULL too
        return _whole(term, kinds.INT, op, value)
    return Compare(term, op, Literal(kinds.DECIMAL, value))


def _digits(value: Decimal) -> tuple[int, int]:
    """Before and after the point."""
    return max(0, value.adjusted() + 1), max(0, -int(value.as_tuple().exponent))


def _listed_digits(literal: Literal) -> tuple[int, int]:
    """In a list an integer counts with all digits that its type may have."""
    if literal.kind == kinds.INT and _LEAST_LONG <= literal.value <= _MOST_LONG:
        return (10 if -(2**31) <= literal.value < 2**31 else 20), 0
    return _digits(Decimal(literal.value))


def _fit(type_: Type, digits: Iterable[tuple[int, int]]) -> bool:
    """Whether one decimal type holds the column and the literals: past 38 digits Spark rounds, and 0 = 1e-19."""
    own = _DECIMAL_DIGITS.get(type_.name, type_.precision - type_.scale), type_.scale
    total: int = sum(max(n) for n in zip(own, *digits, strict=True))
    return total <= 38


def _as_double(term: Term, type_: Type, op: str, value: Value) -> Predicate | None:
    """Spark casts the column to double, which keeps the order but may join neighbours: find where `value` lies."""
    exponent = -type_.scale if type_.kind == kinds.DECIMAL else 0
    limit = 10 ** (type_.precision if type_.kind == kinds.DECIMAL else 19)

    def exact(n: int) -> Decimal:
        return Decimal(f"{n}E{exponent}")  # scaleb would round to the context's 28 digits

    def double(n: int) -> float:
        return float(exact(n)) if exponent else float(n)

    def first(beyond: Callable[[float], bool]) -> Literal:
        low, high = -limit, limit + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if beyond(double(middle)) else (middle + 1, high)
        return Literal(type_.kind, exact(low) if type_.kind == kinds.DECIMAL else low)

    if type_.precision > 38:
        return None
    return _between(term, op, first(lambda d: bool(d >= value)), first(lambda d: bool(d > value)))


def _between(term: Term, op: str, start: Literal, end: Literal) -> Predicate:
    """`op` against a value that stands for all of [start, end)."""
    match op:
        case "<" | ">=":
            return _bounded(term, op, start)
        case "<=":
            return _bounded(term, "<", end)
        case ">":
            return _bounded(term, ">=", end)
        case "=":
            return And((_bounded(term, ">=", start), _bounded(term, "<", end)))
    return Or((_bounded(term, "<", start), _bounded(term, ">=", end)))


_INTEGER = re.compile(r"(0|-?[1-9]\d{0,17})\Z")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?\Z")


def _as_number(term: Term, type_: Type, op: str, value: str) -> Predicate | None:
    """A number in quotes: only in forms that mean the same whichever common type this Spark chooses."""
    if type_.kind == kinds.INT and _INTEGER.match(value):
        return _whole(term, kinds.INT, op, int(value))
    if not _NUMBER.match(value) or len(value.lstrip("-").replace(".", "").lstrip("0")) > 15:
        return None
    if type_.name == "double":
        return Compare(term, op, Literal(kinds.FLOAT, float(value) + 0.0))
    if type_.kind == kinds.DECIMAL and type_.precision <= 15 and op not in ("=", "<>"):
        return Compare(term, op, Literal(kinds.DECIMAL, Decimal(value)))
    return None


def _float(term: Term, type_: Type, op: str, literal: Literal) -> Predicate | None:
    if literal.value is NAN:
        return Compare(term, op, literal)
    value = float(literal.value) + 0.0
    if type_.name == "float" and literal.kind == kinds.INT and abs(literal.value) > 1 << 24:
        return None  # some modes compare as 32-bit floats
    return Compare(term, op, Literal(kinds.FLOAT, value))


# --- types and texts ------------------------------------------------------------------------------


def _widens(source: Type, target: Type) -> bool:
    """A cast that maps each value to an equal one, or, from integers to decimals, to the same number."""
    match source.kind, target.kind:
        case kinds.INT, kinds.INT:
            return _DIGITS[target.name] >= _DIGITS[source.name]
        case kinds.INT, kinds.DECIMAL:
            return target.precision - target.scale >= _DIGITS[source.name]
        case kinds.DECIMAL, kinds.DECIMAL:
            return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale
        case kinds.FLOAT, kinds.FLOAT:
            return target.name == "double" or source.name == "float"
    return source.kind == target.kind and source.kind != kinds.OTHER


def _same_order(a: Type, b: Type) -> bool:
    if a.kind != b.kind or a.kind == kinds.OTHER:
        return False
    return a.kind != kinds.DECIMAL or max(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale) <= 38


def _opaque(p: Predicate) -> Opaque:
    return Opaque(text(p), tuple(sorted(columns(p), key=term_text)))


def _zone(name: str | None) -> Any:
    if name is None:
        return None
    if name.upper() in ("UTC", "GMT", "Z", "ETC/UTC", "ETC/GMT", "+00:00"):
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _parse_date(value: str) -> int | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        return None
    local = parse_timestamp(value)
    return None if local is None else local // _DAY


def parse_timestamp(value: str) -> int | None:
    """Microseconds of a wall-clock time such as 1995-03-01 or 1995-03-01 12:30:00.5; None for any other form."""
    found = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?", value)
    if not found:
        return None
    year, month, day, hour, minute, second = (int(g or 0) for g in found.groups()[:6])
    micros = int((found[7] or "0").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        return None
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
