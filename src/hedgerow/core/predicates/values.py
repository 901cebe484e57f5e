"""Canonical Python values. The values of one kind have one total order, the same as in Spark.

int, date (days), timestamp (microseconds)   int
time (nanoseconds since midnight)            int
decimal                                      Decimal
float                                        float; -0.0 becomes 0.0, and NaN becomes NAN, the greatest value
string, binary, boolean                      str (code points = UTF-8 bytes), bytes, bool
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import total_ordering
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.types import Type

Value = Any  # int | Decimal | float | str | bytes | bool, or NAN
_EPOCH = datetime(1970, 1, 1)
DAY_MICROS = 86_400_000_000
MAX_DECIMAL_DIGITS = 38


@total_ordering
class _Nan:
    """Spark's NaN: equal to itself and greater than every other number."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other is self

    def __lt__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "NaN"

    def __reduce__(self) -> str:
        return "NAN"


NAN = _Nan()


def canonical(kind: str, value: Any) -> Value:
    """Convert a Python value to the canonical form of a kind; raise ValueError if it does not fit.

    >>> canonical("date", date(1970, 1, 2)), canonical("float", float("nan")), canonical("decimal", 5)
    (1, NaN, Decimal('5'))
    """
    match kind, value:
        case kinds.FLOAT, _Nan():
            return value
        case kinds.FLOAT, float() | int():
            return NAN if math.isnan(value) else float(value) + 0.0
        case (kinds.INT, int()) if not isinstance(value, bool):
            return value
        case kinds.DECIMAL, Decimal() if value.is_finite():
            return value
        case (kinds.DECIMAL, int()) if not isinstance(value, bool):
            return Decimal(value)
        case (kinds.STRING, str()) | (kinds.BINARY, bytes()) | (kinds.BOOLEAN, bool()):
            return value
        case kinds.TIME, time() if value.tzinfo is None:
            return (datetime.combine(_EPOCH, value) - _EPOCH) // timedelta(microseconds=1) * 1000
        case kinds.DATE, datetime():
            raise ValueError(f"{value!r} is not a date")
        case kinds.DATE, date():
            return (value - date(1970, 1, 1)).days
        case ((kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ | kinds.TIMESTAMP_LOCAL), datetime()):
            if value.tzinfo is not None:
                value = value.astimezone(timezone.utc).replace(tzinfo=None)
            return (value - _EPOCH) // timedelta(microseconds=1)
        case ((kinds.DATE | kinds.TIME | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ | kinds.TIMESTAMP_LOCAL), int()):
            return value
    raise ValueError(f"{value!r} is not a value of kind {kind}")


def has_literal(kind: str, value: Value) -> bool:
    """True if Spark can write this value as a literal: it fits the widest type of its kind, such as bigint.

    >>> has_literal("int", 2**63), has_literal("decimal", Decimal(10) ** 38), has_literal("date", 2**31 - 1)
    (False, False, True)
    """
    match kind:
        case kinds.INT | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ | kinds.TIMESTAMP_LOCAL:
            return bool(-(2**63) <= value < 2**63)
        case kinds.DATE:
            return bool(-(2**31) <= value < 2**31)
        case kinds.TIME:
            return bool(0 <= value < DAY_MICROS * 1000 and value % 1000 == 0)
        case kinds.DECIMAL:
            return sum(digits_of(value)) <= MAX_DECIMAL_DIGITS
    return True


def digits_of(value: Decimal) -> tuple[int, int]:
    """Return the numbers of digits before and after the point."""
    return max(0, value.adjusted() + 1), max(0, -int(value.as_tuple().exponent))


def date_text(days: int) -> str:
    """Return the date as Spark writes it, in the proleptic Gregorian calendar, also for years outside 1 to 9999."""
    # Civil-from-days over 400-year eras (146,097 days each), counted from 0000-03-01.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    in_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * in_year + 2) // 153
    month_day = in_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += 400 * era + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{month_day:02d}"


def timestamp_text(micros: int) -> str:
    days, since_midnight = divmod(micros, DAY_MICROS)
    return f"{date_text(days)} {clock_text(since_midnight)}"


def clock_text(micros: int) -> str:
    """Return the time of day, `micros` after midnight, as Spark writes it."""
    seconds, fraction = divmod(micros, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return clock + (f".{fraction:06d}" if fraction else "")


def prefix_end(prefix: str) -> str | None:
    """Return the least string above every string that starts with `prefix`; None if there is none.

    >>> prefix_end("ab"), prefix_end("a\U0010ffff")
    ('ac', 'b')
    """
    for cut in range(len(prefix), 0, -1):
        last = ord(prefix[cut - 1])
        if last < 0x10FFFF:
            following = last + 1 if last != 0xD7FF else 0xE000  # skip surrogates, which are no characters
            return prefix[: cut - 1] + chr(following)
    return None


def comparable(array: pa.Array) -> pa.Array:
    """Return the same values in a type that sorts as in Spark (except NaN) and whose Python values are canonical."""
    type_ = Type.of_arrow(array.type)
    match type_.kind:
        case kinds.DATE:
            return pc.cast(pc.cast(array, pa.date32()), pa.int32())
        case kinds.TIME:
            return pc.cast(pc.cast(array, pa.time64("ns")), pa.int64())
        case kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ:
            return pc.cast(pc.cast(array, pa.timestamp("us", array.type.tz)), pa.int64())
        case kinds.FLOAT:
            return pc.add(pc.cast(array, pa.float64()), 0.0)  # -0.0 becomes 0.0
        case kinds.DECIMAL if pa.types.is_integer(array.type):
            return pc.cast(array, pa.decimal128(type_.precision))
        case kinds.STRING:
            return pc.cast(array, pa.large_string())
    return array


def to_arrow(kind: str, values: Sequence[Value]) -> pa.Array:
    """Return canonical values as an Arrow array, exactly; the values must not contain NaN."""
    match kind:
        case kinds.INT | kinds.DATE | kinds.TIME | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ:
            return pa.array(values, pa.int64())
        case kinds.FLOAT:
            return pa.array(values, pa.float64())
        case kinds.BOOLEAN:
            return pa.array(values, pa.bool_())
        case kinds.BINARY:
            return pa.array(values, pa.large_binary())
        case kinds.DECIMAL:  # as text: every Decimal has its own scale
            return pa.array([format(v, "f") for v in values], pa.large_string())
    return pa.array(values, pa.large_string())


def from_arrow(kind: str, array: pa.Array) -> list[Value]:
    values: list[Any] = array.to_pylist()
    return [Decimal(v) for v in values] if kind == kinds.DECIMAL else values
