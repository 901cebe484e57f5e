"""Evaluate constant SQL expressions to typed literals: DATE '1995-01-01' + INTERVAL 3 MONTHS is a date."""

from __future__ import annotations

import calendar
import re
from datetime import date, time, timedelta
from decimal import Decimal, InvalidOperation, localcontext
from math import isfinite

from sqlglot import exp

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.binding import parse_timestamp
from hedgerow.core.predicates.nodes import Literal, lit
from hedgerow.core.predicates.values import canonical, has_literal, prefix_end

_DAY_MICROS = 86_400_000_000
_T = exp.DataType.Type
_INTEGERS = {_T.TINYINT: 1 << 7, _T.SMALLINT: 1 << 15, _T.INT: 1 << 31, _T.BIGINT: 1 << 63}
_ZONED = {_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ}
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_MAX_DIGITS = 30  # below Spark's 38, so that Spark rounds no intermediate result of + - *


def fold(node: exp.Expr) -> Literal | None:
    """Return the value of a constant expression; None if it is not constant or NULL, or if Spark's value may differ."""
    match node:
        case exp.Paren():
            return fold(node.this)
        case exp.Literal():
            return lit(node.this) if node.is_string else _number(node.this)
        case exp.Boolean():
            return lit(bool(node.this))
        case exp.Neg():
            return _negated(fold(node.this))
        case exp.Cast():
            return _cast(fold(node.this), node.to)
        case exp.TsOrDsToDate() | exp.Date() if node.this is not None and not node.args.get("expressions"):
            return _to_date(fold(node.this))
        case exp.Add() | exp.Sub():
            return _sum_literal(node)
        case exp.Mul():
            return _arithmetic(node, fold(node.left), fold(node.right))
        case exp.DateAdd() | exp.DateSub() | exp.TsOrDsAdd():
            return _date_add(node)
        case exp.AddMonths() if not node.args.get("preserve_end_of_month"):
            start, months = _to_date(fold(node.this)), fold(node.expression)
            return _plus_units(start, months.value, "MONTH") if start and months and months.kind == kinds.INT else None
        case exp.HexString():
            return lit(bytes.fromhex(str(node.this).zfill(len(str(node.this)) + len(str(node.this)) % 2)))
    return None


def _number(digits: str) -> Literal | None:
    """Return the number; None for a text that Spark refuses, such as a number with too many digits."""
    try:
        if "e" in digits.lower():
            return lit(float(digits)) if isfinite(float(digits)) else None
        value = Decimal(digits)
    except (ValueError, InvalidOperation):
        return None
    if not has_literal(kinds.DECIMAL, value):
        return None
    return lit(value) if "." in digits else lit(int(value))


def _negated(value: Literal | None) -> Literal | None:
    if value is None or value.kind not in (kinds.INT, kinds.DECIMAL, kinds.FLOAT):
        return None
    is_decimal = value.kind == kinds.DECIMAL
    negative = value.value.copy_negate() if is_decimal else -value.value  # unary minus would round a decimal
    return Literal(value.kind, canonical(value.kind, negative))


def _cast(value: Literal | None, to: exp.DataType) -> Literal | None:
    if value is None:
        return None
    if to.this == _T.DATE:
        return _to_date(value)
    if to.this == _T.TIME:
        return _to_time(value, [int(p.name) for p in to.expressions])
    if to.this in _ZONED or to.this in (_T.TIMESTAMP, _T.TIMESTAMPNTZ):
        kind = kinds.TIMESTAMP_LOCAL if to.this in _ZONED else kinds.TIMESTAMP_NTZ
        if value.kind == kinds.DATE:
            return Literal(kind, value.value * _DAY_MICROS)
        return _timestamp(kind, value.value) if value.kind == kinds.STRING else value if value.kind == kind else None
    if to.this in _INTEGERS and value.kind == kinds.INT:
        limit = _INTEGERS[to.this]
        return value if -limit <= value.value < limit else None  # beyond it, Spark's cast fails or overflows
    if to.this == _T.DOUBLE and value.kind in (kinds.INT, kinds.DECIMAL, kinds.FLOAT):
        return Literal(kinds.FLOAT, canonical(kinds.FLOAT, float(value.value)))
    if to.this == _T.DECIMAL and value.kind in (kinds.INT, kinds.DECIMAL, kinds.STRING):
        return _to_decimal(value, [int(p.name) for p in to.expressions])
    if to.this in (_T.TEXT, _T.VARCHAR) and value.kind == kinds.STRING and not to.expressions:
        return value
    return None


def _timestamp(kind: str, text: str) -> Literal | None:
    if kind == kinds.TIMESTAMP_LOCAL:
        for suffix in ("Z", " UTC", "+00:00"):
            if text.endswith(suffix):
                micros = parse_timestamp(text[: -len(suffix)])
                return None if micros is None else Literal(kinds.TIMESTAMP, micros)
    micros = parse_timestamp(text)
    return None if micros is None else Literal(kind, micros)


def _to_date(value: Literal | None) -> Literal | None:
    if value is None or value.kind == kinds.DATE:
        return value
    if value.kind == kinds.STRING and len(value.value) == 10:
        micros = parse_timestamp(value.value)
        return None if micros is None else Literal(kinds.DATE, micros // _DAY_MICROS)
    return None


def _to_time(value: Literal, precision: list[int]) -> Literal | None:
    """Return the time of day in a text such as 05:00:00.5; None for another form, or if the cast drops digits."""
    parts = _CLOCK.fullmatch(value.value) if value.kind == kinds.STRING else None
    if not parts or len(parts[4] or "") > (precision[0] if precision else 6):
        return None
    hour, minute, second = (int(part) for part in parts.groups()[:3])
    try:
        return lit(time(hour, minute, second, int((parts[4] or "0").ljust(6, "0"))))
    except ValueError:
        return None


def _to_decimal(value: Literal, size: list[int]) -> Literal | None:
    precision, scale = [*size, 10, 0][:2] if len(size) != 1 else (size[0], 0)
    try:
        number = Decimal(value.value)
    except InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    fits = isinstance(exponent, int) and -exponent <= scale and number.adjusted() + 1 <= precision - scale
    return Literal(kinds.DECIMAL, number) if fits else None


def _sum_literal(node: exp.Add | exp.Sub) -> Literal | None:
    left, right = node.left.unnest(), node.right.unnest()
    sign = -1 if isinstance(node, exp.Sub) else 1
    if isinstance(right, exp.Interval):
        return _plus_interval(fold(left), right, sign)
    if isinstance(left, exp.Interval) and sign == 1:
        return _plus_interval(fold(right), left, 1)
    a, b = fold(left), fold(right)
    if a is not None and b is not None and a.kind == kinds.DATE and b.kind == kinds.INT:
        return _plus_units(a, sign * b.value, "DAY")
    return _arithmetic(node, a, b)


def _arithmetic(node: exp.Expr, a: Literal | None, b: Literal | None) -> Literal | None:
    """Return the exact sum, difference or product of integers and short decimals; None for doubles."""
    if a is None or b is None or {a.kind, b.kind} - {kinds.INT, kinds.DECIMAL}:
        return None
    with localcontext() as exact:
        exact.prec = 80
        x, y = Decimal(a.value), Decimal(b.value)
        result = x + y if isinstance(node, exp.Add) else x - y if isinstance(node, exp.Sub) else x * y
    if len(result.as_tuple().digits) > _MAX_DIGITS:
        return None
    if a.kind == b.kind == kinds.INT:
        return lit(int(result)) if abs(result) < 1 << 31 else None  # beyond that Spark's int may overflow
    return lit(result)


def _date_add(node: exp.DateAdd | exp.DateSub | exp.TsOrDsAdd) -> Literal | None:
    start, amount = _to_date(fold(node.this)), node.expression
    sign = -1 if isinstance(node, exp.DateSub) else 1
    if isinstance(amount, exp.Interval):
        return _plus_interval(start, amount, sign)
    count = fold(amount) if amount is not None else None
    unit = node.args.get("unit")
    if start is None or count is None or count.kind != kinds.INT:
        return None
    return _plus_units(start, sign * count.value, unit.name.upper() if unit is not None else "DAY")


def _plus_interval(start: Literal | None, interval: exp.Interval, sign: int) -> Literal | None:
    unit, amount = interval.args.get("unit"), interval.this
    if start is None or not isinstance(unit, exp.Var) or amount is None:
        return None
    try:
        count = int(amount.unnest().name if isinstance(amount.unnest(), exp.Literal) else amount.sql())
    except ValueError:
        return None
    return _plus_units(start, sign * count, unit.name.upper().rstrip("S"))


def _plus_units(start: Literal, count: int, unit: str) -> Literal | None:
    """Return the date or time plus `count` units of at least a day; None for shorter units, where time zones matter."""
    if start.kind not in (kinds.DATE, kinds.TIMESTAMP_LOCAL, kinds.TIMESTAMP_NTZ):
        return None
    days, rest = (start.value, 0) if start.kind == kinds.DATE else divmod(start.value, _DAY_MICROS)
    try:
        day = date(1970, 1, 1) + timedelta(days=days)
        match unit:
            case "DAY":
                day += timedelta(days=count)
            case "WEEK":
                day += timedelta(weeks=count)
            case "MONTH" | "QUARTER" | "YEAR":
                day = _add_months(day, count * {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[unit])
            case _:
                return None
    except (OverflowError, ValueError):
        return None
    moved = canonical(kinds.DATE, day)
    return Literal(start.kind, moved if start.kind == kinds.DATE else moved * _DAY_MICROS + rest)


def _add_months(day: date, months: int) -> date:
    """Return the same day some months later, or the last day of a shorter month, as in Spark."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def like_prefix(pattern: str) -> str | None:
    """Return the prefix of a LIKE pattern that is only a prefix test, such as 'abc%'; else None."""
    body = pattern.rstrip("%")
    is_prefix = body != pattern and not any(c in body for c in "%_\\")
    return body if is_prefix and (not body or prefix_end(body)) else None
