"""Bind a predicate to the column names and types of a schema, so that literals compare as in Spark.

Spark casts one side of a comparison to a common type. If Spark casts the literal, it is cast here. If Spark casts the
column and the cast keeps the order (an integer to a double, a timestamp to its date), the comparison is rewritten for
the bare column. Every other comparison becomes opaque: only Spark can evaluate it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, floor
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hedgerow.core.errors import SchemaError, meant
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.called_functions import outer_call
from hedgerow.core.predicates.nodes import (
    And,
    Cast,
    Column,
    Compare,
    CompareTerms,
    Expr,
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
    columns_of,
    disjunction,
    map_children,
)
from hedgerow.core.predicates.schema import Schema, Session, path_of
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import DAY_MICROS, MAX_DECIMAL_DIGITS, NAN, Value, digits_of, has_literal

_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL_DIGITS = _INTEGER_DIGITS | {"bigint": 20}  # digits of the decimal type to which Spark casts an integer
_1900_MICROS, _2100_MICROS = -2_208_988_800_000_000, 4_102_444_800_000_000
_OF_MAP, _MAPS_OF_TEXTS = re.compile(r"(.+?)\['[^'\\]*'\]"), ("map<string,string>", "map<string, string>")


def bind(p: Predicate, schema: Schema, session: Session | None = None) -> Predicate:
    """Return the predicate in the schema's column names and types; raise SchemaError if the schema lacks a column.

    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> from hedgerow.core.predicates.schema import as_schema
    >>> schema = as_schema({"Shipped": "date", "quantity": "bigint"})
    >>> predicate_text(bind(Compare(col("shipped"), "<=", lit("1995-03-31")), schema))
    "Shipped < DATE '1995-04-01'"
    >>> predicate_text(bind(Compare(col("quantity"), ">", lit(Decimal("2.5"))), schema))
    'quantity >= 3'
    """
    return _Binder(schema, session or Session()).predicate(p)


def bind_column(column: Column, schema: Schema) -> Column:
    """Return the column in the schema's spelling; raise SchemaError if there is no such column."""
    return _Binder(schema, Session()).column(column)


class _Binder:
    def __init__(self, schema: Schema, session: Session) -> None:
        self.schema = schema
        self.spelling = {name.lower(): name for name in schema}
        self.zone = _zone(session.zone)
        self.functions = session.functions

    # --- names ---

    def column(self, column: Column) -> Column:
        """Return the column in the schema's spelling; struct fields that the schema does not list keep theirs."""
        path = column.path
        for n in range(len(path), 0, -1):
            name = self.spelling.get(term_text(Column(path[:n])).lower())
            if name is not None:
                return Column((*path_of(name), *path[n:]))
        raise SchemaError(f"there is no column {term_text(column)}{meant(term_text(column), self.schema)}")

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
            case Expr(sql, (column,)) if self._is_text_in_map(sql, column):
                return Type(kinds.STRING)
            case Expr(sql, type=None) if self.functions:
                returned = self.functions.get(outer_call(sql), Type(kinds.OTHER))
                return Type(kinds.OTHER) if returned.kind == kinds.BOOLEAN else returned  # it is a condition
        return term.type or Type(kinds.OTHER)

    def _is_text_in_map(self, sql: str, column: Column) -> bool:
        """True if an expression is `column['key']` of a map of texts.

        Other map values are not supported, because Spark casts them before a comparison.
        """
        match = _OF_MAP.fullmatch(sql)
        is_of_column = match is not None and match[1].lower() == term_text(column).lower()
        return is_of_column and self.type_of(column).name in _MAPS_OF_TEXTS

    # --- predicates ---

    def predicate(self, p: Predicate) -> Predicate:
        match p:
            case IsNull(term):
                return IsNull(self._without_cast(self.term(term)))
            case Compare(term, op, literal):
                bound = Compare(self.term(term), op, literal)
                return self._compare(bound.term, op, literal) or _opaque(bound)
            case In(term, literals):
                return self._in(In(self.term(term), literals))
            case Prefix(term, prefix):
                bare = self._without_cast(self.term(term))
                is_string = self.type_of(bare).kind == kinds.STRING
                return Prefix(bare, prefix) if is_string else _opaque(Prefix(self.term(term), prefix))
            case CompareTerms(left, op, right):
                a, b = self._without_cast(self.term(left)), self._without_cast(self.term(right))
                if _same_order(self.type_of(a), self.type_of(b)):
                    return CompareTerms(a, op, b)
                return _opaque(CompareTerms(self.term(left), op, self.term(right)))
            case Like(term, pattern):
                return Like(self.term(term), pattern)
            case Opaque(sql, cols):
                return Opaque(sql, tuple(map(self.column, cols)))
        return map_children(p, self.predicate)

    def _in(self, p: In) -> Predicate:
        literal_kinds = {literal.kind for literal in p.literals}
        type_ = self.type_of(p.term)
        # Spark casts the list and the column to one common type. Go on only if the cast changes no comparison.
        if len(literal_kinds) > 1 and not literal_kinds <= {kinds.INT, kinds.DECIMAL}:
            return _opaque(p)
        if kinds.STRING in literal_kinds and type_.kind in (kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ, kinds.FLOAT):
            return _opaque(p)  # outside ANSI mode Spark casts the column to text: 5.0 is not in ('5')
        exact_numbers = type_.kind in (kinds.INT, kinds.DECIMAL) and literal_kinds <= {kinds.INT, kinds.DECIMAL}
        if exact_numbers and not _fit(type_, map(_listed_digits, p.literals)):
            return _opaque(p)
        equalities = [self._compare(p.term, "=", literal) for literal in p.literals]
        if None in equalities:
            return _opaque(p)
        return disjunction(*(e for e in equalities if e is not None)) if equalities else p

    def _without_cast(self, term: Term) -> Term:
        """Return the bare column if the term is a cast that changes neither order nor NULLs; else return the term."""
        if isinstance(term, Cast) and _widens(self.type_of(term.column), term.type):
            return term.column
        return term

    def _compare(self, term: Term, op: str, literal: Literal) -> Predicate | None:
        """Return the comparison as Spark evaluates it; None if only Spark can evaluate it."""
        term = self._without_cast(term)
        type_ = self.type_of(term)
        if isinstance(term, Cast):
            about_column = self._uncast(term, op, literal)
            if about_column is not None:
                return about_column
        match type_.kind, literal.kind:
            case kinds.INT | kinds.DECIMAL, kinds.INT | kinds.DECIMAL:
                return _against_exact_number(term, type_, op, Decimal(literal.value))
            case kinds.INT | kinds.DECIMAL, kinds.FLOAT:
                return _against_double(term, type_, op, literal.value)
            case kinds.INT | kinds.DECIMAL | kinds.FLOAT, kinds.STRING:
                return _against_quoted_number(term, type_, op, literal.value)
            case kinds.FLOAT, kinds.INT | kinds.DECIMAL | kinds.FLOAT:
                return _float_column(term, type_, op, literal)
            case kinds.DATE, kinds.DATE | kinds.STRING:
                days = literal.value if literal.kind == kinds.DATE else _parse_date(literal.value)
                return None if days is None else _compare_whole(term, kinds.DATE, op, days)
            case kinds.DATE, kinds.TIMESTAMP | kinds.TIMESTAMP_LOCAL:
                return self._date_against_timestamp(term, op, literal)
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
        """Replace a comparison of a cast by one of the column itself: CAST(ts AS DATE) = d becomes a range of ts.

        This supports casts that keep the order but may give different values the same result: number to double,
        timestamp to date. Return None for all others.
        """
        column, source = term.column, self.type_of(term.column)
        match source.kind, term.type.kind:
            case kinds.INT | kinds.DECIMAL, kinds.FLOAT if term.type.name == "double":
                if literal.kind in (kinds.INT, kinds.DECIMAL, kinds.FLOAT):
                    value = literal.value if literal.value is NAN else float(literal.value)
                    return _against_double(column, source, op, value)
            case kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ, kinds.DATE if literal.kind in (kinds.DATE, kinds.STRING):
                days = literal.value if literal.kind == kinds.DATE else _parse_date(literal.value)
                if days is None:
                    return None
                start, end = self._midnight(source.kind, days), self._midnight(source.kind, days + 1)
                if start is not None and end is not None:
                    return _compare_range(column, op, Literal(source.kind, start), Literal(source.kind, end))
        return None

    # --- time ---

    def _midnight(self, kind: str, days: int) -> int | None:
        return days * DAY_MICROS if kind == kinds.TIMESTAMP_NTZ else self._instant(days * DAY_MICROS)

    def _instant(self, local: int) -> int | None:
        """Return the microseconds since the epoch of a local time; None if the session's clock skips or repeats it."""
        if self.zone is timezone.utc:
            return local
        if self.zone is None or not _1900_MICROS < local < _2100_MICROS:
            return None
        wall = datetime(1970, 1, 1) + timedelta(microseconds=local)
        first, second = (wall.replace(tzinfo=self.zone, fold=fold).utcoffset() for fold in (0, 1))
        return None if first != second or first is None else local - first // timedelta(microseconds=1)

    def _timestamp(self, kind: str, literal: Literal) -> int | None:
        """Return the literal as a value of a timestamp column of this kind; None if only Spark can convert it."""
        zoned = kind == kinds.TIMESTAMP
        match literal.kind:
            case kinds.TIMESTAMP:
                return literal.value if zoned else None
            case kinds.TIMESTAMP_LOCAL:  # Spark casts an NTZ column to the session's zone
                return self._instant(literal.value) if zoned or self.zone is timezone.utc else None
            case kinds.TIMESTAMP_NTZ:
                return self._instant(literal.value) if zoned else literal.value
            case kinds.DATE:
                return self._midnight(kind, literal.value)
            case kinds.STRING:
                local = parse_timestamp(literal.value)
                return None if local is None else self._instant(local) if zoned else local
        return None

    def _date_against_timestamp(self, term: Term, op: str, literal: Literal) -> Predicate | None:
        """Compare with the first midnights at and after the timestamp, because Spark casts the date to its midnight."""
        if literal.kind == kinds.TIMESTAMP_LOCAL or self.zone is timezone.utc:
            local = literal.value
        else:
            return None
        days, after_midnight = divmod(local, DAY_MICROS)
        instants = [self._instant(t) for t in (days * DAY_MICROS, (days + 1) * DAY_MICROS, local)]
        if None in instants:
            return None
        at_or_after = days + (after_midnight > 0)
        return _compare_range(term, op, Literal(kinds.DATE, at_or_after), Literal(kinds.DATE, days + 1))


# --- numbers --------------------------------------------------------------------------------------


def _compare_bounded(term: Term, op: str, literal: Literal) -> Predicate:
    """Return the comparison, or `term = term` or `term <> term` if the literal is beyond all values of its kind.

    Spark has no literal for such a value, except for whole numbers. There it answers TRUE or FALSE even for NULL.
    """
    if has_literal(literal.kind, literal.value):
        return Compare(term, op, literal)
    is_above = literal.value > 0
    is_true = {"<": is_above, "<=": is_above, ">": not is_above, ">=": not is_above, "=": False, "<>": True}[op]
    return Not(In(term, ())) if is_true else In(term, ())


def _compare_whole(term: Term, kind: str, op: str, value: int | Decimal) -> Predicate:
    """Return a comparison of whole numbers or dates with half-open bounds: `x <= 4` and `x < 5` become equal."""
    up, down, exact = ceil(value), floor(value), value == floor(value)
    match op:
        case "<":
            return _compare_bounded(term, "<", Literal(kind, up))
        case "<=":
            return _compare_bounded(term, "<", Literal(kind, down + 1))
        case ">":
            return _compare_bounded(term, ">=", Literal(kind, down + 1))
        case ">=":
            return _compare_bounded(term, ">=", Literal(kind, up))
        case "=":
            return _compare_bounded(term, "=", Literal(kind, down)) if exact else In(term, ())
    return _compare_bounded(term, "<>", Literal(kind, down)) if exact else Not(In(term, ()))


def _against_exact_number(term: Term, type_: Type, op: str, value: Decimal) -> Predicate | None:
    """Compare with an integer or decimal; None if Spark's common decimal type lacks some of the digits."""
    if not fits(type_, value):
        return None
    if type_.kind == kinds.INT:
        if op not in ("=", "<>") and not has_literal(kinds.INT, value):
            return None  # Spark answers without reading the column, even for NULL
        return _compare_whole(term, kinds.INT, op, value)
    return Compare(term, op, Literal(kinds.DECIMAL, value))


def _listed_digits(literal: Literal) -> tuple[int, int]:
    """Return a literal's digits as Spark counts them in an IN list: an integer has all digits of its type."""
    if literal.kind == kinds.INT and has_literal(kinds.INT, literal.value):
        return (10 if -(2**31) <= literal.value < 2**31 else 20), 0
    return digits_of(Decimal(literal.value))


def fits(type_: Type, value: Decimal) -> bool:
    """True if Spark compares a column of this type with the value without rounding either."""
    return _fit(type_, (digits_of(value),))


def _fit(type_: Type, digits: Iterable[tuple[int, int]]) -> bool:
    """True if one decimal type holds the column and the literals. Else Spark rounds: 0 = 1e-19 becomes TRUE."""
    column_digits = _DECIMAL_DIGITS.get(type_.name, type_.precision - type_.scale), type_.scale
    total: int = sum(max(n) for n in zip(column_digits, *digits, strict=True))
    return total <= MAX_DECIMAL_DIGITS


def _against_double(term: Term, type_: Type, op: str, value: Value) -> Predicate | None:
    """Compare with a double: Spark casts the column, so neighbours may become equal; find the bounds by bisection."""
    exponent = -type_.scale if type_.kind == kinds.DECIMAL else 0
    limit = 10 ** (type_.precision if type_.kind == kinds.DECIMAL else 19)

    def exact(n: int) -> Decimal:
        return Decimal(f"{n}E{exponent}")  # scaleb would round to the context's 28 digits

    def double(n: int) -> float:
        return float(exact(n)) if exponent else float(n)

    def first(is_past: Callable[[float], bool]) -> Literal:
        """Return the least value of the column's type that satisfies `is_past` after the cast to double."""
        low, high = -limit, limit + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if is_past(double(middle)) else (middle + 1, high)
        return Literal(type_.kind, exact(low) if type_.kind == kinds.DECIMAL else low)

    if type_.precision > MAX_DECIMAL_DIGITS:
        return None
    return _compare_range(term, op, first(lambda d: bool(d >= value)), first(lambda d: bool(d > value)))


def _compare_range(term: Term, op: str, start: Literal, end: Literal) -> Predicate:
    """Compare with a value to which Spark casts every column value in [start, end)."""
    match op:
        case "<" | ">=":
            return _compare_bounded(term, op, start)
        case "<=":
            return _compare_bounded(term, "<", end)
        case ">":
            return _compare_bounded(term, ">=", end)
        case "=":
            return And((_compare_bounded(term, ">=", start), _compare_bounded(term, "<", end)))
    return Or((_compare_bounded(term, "<", start), _compare_bounded(term, ">=", end)))


_QUOTED_INTEGER = re.compile(r"(0|-?[1-9]\d{0,17})\Z")
_QUOTED_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?\Z")


def _against_quoted_number(term: Term, type_: Type, op: str, value: str) -> Predicate | None:
    """Compare with a number in quotes, if it has the same meaning in every common type that Spark may choose."""
    if type_.kind == kinds.INT and _QUOTED_INTEGER.match(value):
        return _compare_whole(term, kinds.INT, op, int(value))
    if not _QUOTED_NUMBER.match(value) or len(value.lstrip("-").replace(".", "").lstrip("0")) > 15:
        return None
    if type_.name == "double":
        return Compare(term, op, Literal(kinds.FLOAT, float(value) + 0.0))
    if type_.kind == kinds.DECIMAL and type_.precision <= 15 and op not in ("=", "<>"):
        return Compare(term, op, Literal(kinds.DECIMAL, Decimal(value)))
    return None


def _float_column(term: Term, type_: Type, op: str, literal: Literal) -> Predicate | None:
    if literal.value is NAN:
        return Compare(term, op, literal)
    value = float(literal.value) + 0.0
    if type_.name == "float" and literal.kind == kinds.INT and abs(literal.value) > 1 << 24:
        return None  # in some modes Spark compares 32-bit floats
    return Compare(term, op, Literal(kinds.FLOAT, value))


# --- types and texts ------------------------------------------------------------------------------


def _widens(source: Type, target: Type) -> bool:
    """True if the cast maps every value to an equal one, or an integer to the same number as a decimal."""
    match source.kind, target.kind:
        case kinds.INT, kinds.INT:
            return _INTEGER_DIGITS[target.name] >= _INTEGER_DIGITS[source.name]
        case kinds.INT, kinds.DECIMAL:
            return target.precision - target.scale >= _INTEGER_DIGITS[source.name]
        case kinds.DECIMAL, kinds.DECIMAL:
            return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale
        case kinds.FLOAT, kinds.FLOAT:
            return target.name == "double" or source.name == "float"
    return source.kind == target.kind and source.kind != kinds.OTHER


def _same_order(a: Type, b: Type) -> bool:
    """True if Spark compares columns of these types by the order of their kind, without rounding."""
    if a.kind != b.kind or a.kind == kinds.OTHER:
        return False
    whole_digits, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    return a.kind != kinds.DECIMAL or whole_digits + scale <= MAX_DECIMAL_DIGITS


def _opaque(p: Predicate) -> Opaque:
    return Opaque(predicate_text(p), tuple(sorted(columns_of(p), key=term_text)))


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
    return None if local is None else local // DAY_MICROS


def parse_timestamp(value: str) -> int | None:
    """Return the microseconds of a local time such as 1995-03-01 or 1995-03-01 12:30:00.5; None for other forms."""
    parts = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?", value)
    if not parts:
        return None
    year, month, day, hour, minute, second = (int(g or 0) for g in parts.groups()[:6])
    micros = int((parts[7] or "0").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        return None
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
