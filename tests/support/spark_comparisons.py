"""A slow model of how Spark compares a column with a literal, and random comparisons.

Both sides are cast to a common type, then compared: it casts every value, where `bind` casts the literal. (Real Spark,
4.2 and ANSI mode on and off, agreed on what these generators draw.)
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from hedgerow.core.predicates.nodes import (
    Cast,
    Column,
    Compare,
    Literal,
    Opaque,
    Predicate,
    atoms_of,
    col,
    lit,
    terms_of,
)
from hedgerow.core.predicates.schema import as_schema
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import canonical

UTC, NEW_YORK = "UTC", "America/New_York"
OPS: dict[str, Callable[[Any, Any], bool]] = {
    **{"=": operator.eq, "<>": operator.ne, "<": operator.lt},
    **{"<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
TYPES = {
    **{"t": "tinyint", "i": "int", "l": "bigint", "d": "decimal(6,2)", "e": "decimal(38,10)", "big": "decimal(38,0)"},
    **{"f": "float", "x": "double", "s": "string", "b": "boolean", "raw": "binary"},
    **{"dt": "date", "ts": "timestamp", "ntz": "timestamp_ntz", "list": "array<int>", "fixed": "char(3)"},
}
SCHEMA = as_schema(TYPES)


def spark_double(value: Any) -> tuple[bool, float]:
    """As a double in Spark's order: NaN above all, -0.0 like 0.0."""
    number = float(str(value))  # NaN of our own is no float
    return (True, 0.0) if math.isnan(number) else (False, number + 0.0)


def instant(wall: datetime, zone: str) -> datetime:
    """A clock that shows a time twice means the first; a time that is skipped is counted on from before the gap."""
    return wall.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(timezone.utc)


def wall(micros: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


def as_instant(kind: str, value: Any, zone: str) -> datetime:
    """A date, a wall-clock time, a text, or microseconds since 1970 in UTC."""
    match kind:
        case "timestamp":
            return wall(value).replace(tzinfo=timezone.utc)
        case "date":
            return instant(datetime(1970, 1, 1) + timedelta(days=value), zone)
        case "string":
            return instant(datetime.fromisoformat(value), zone)
    return instant(wall(value), zone)


def sides(column: str, value: Any, literal: Literal, zone: str) -> tuple[Any, Any]:
    """Both sides in their common type."""
    other = literal.value
    match column, literal.kind:
        case "int" | "decimal", "int" | "decimal":
            return Fraction(value), Fraction(other)
        case "int" | "decimal" | "float", "int" | "decimal" | "float":
            return spark_double(value), spark_double(other)
        case "int", "string":
            return value, int(other)
        case "decimal" | "float", "string":
            return spark_double(value), spark_double(other)
        case "date", "string":
            return date(1970, 1, 1) + timedelta(days=value), date.fromisoformat(other)
        case ("date", "timestamp" | "timestamp_local") | ("timestamp", _) | ("timestamp_ntz", "timestamp_local"):
            return as_instant(column, value, zone), as_instant(literal.kind, other, zone)
        case "timestamp_ntz", "date":
            return wall(value), wall(other * 86_400_000_000)
        case "timestamp_ntz", "string":
            return wall(value), datetime.fromisoformat(other)
        case "boolean", "string":
            return value, {"true": True, "false": False}[other.lower()]
    assert column == literal.kind
    return value, other


def model(p: Compare, value: Any, zone: str) -> bool | None:
    """The comparison as Spark makes it, `value` being that of the bare column."""
    if value is None:
        return None
    source = SCHEMA[term_text(p.term.column if isinstance(p.term, Cast) else p.term)].kind
    if isinstance(p.term, Cast) and p.term.type.kind == "date" and source != "date":
        moment = (
            wall(value) if source == "timestamp_ntz" else as_instant(source, value, zone).astimezone(ZoneInfo(zone))
        )
        value, source = (moment.date() - date(1970, 1, 1)).days, "date"
    elif isinstance(p.term, Cast) and p.term.type.kind == "float" and source != "float":
        value, source = float(value), "float"
    return OPS[p.op](*sides(source, value, p.literal, zone))


DAY = 86_400_000_000
NEAR_TRANSITIONS = [datetime(2024, 3, 10), datetime(2024, 11, 3), datetime(2024, 1, 15), datetime(1950, 7, 1)]


def a_moment(random: Random) -> int:
    """Microseconds, many of them at midnight somewhere or beside a change of the clocks."""
    start = (random.choice(NEAR_TRANSITIONS) - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return start + random.randint(-4, 34) * DAY // 24 + random.choice((0, 0, -1, 1, DAY // 48))


def a_day(random: Random) -> int:
    return a_moment(random) // DAY + random.randint(-1, 1)


def a_column_value(random: Random, type_: Type, near: Any) -> Any:
    """A value of the type, if it can be one beside `near`."""
    match type_.kind:
        case "int":
            size = {"tinyint": 7, "int": 31}.get(type_.name, 63)
            middle = int(near) if isinstance(near, int | Decimal | float) and math.isfinite(near) else 0
            value = middle + random.choice((0, 0, 1, -1, random.randint(-3000, 3000)))
            return max(-(2**size), min(2**size - 1, value))
        case "decimal":
            steps = Fraction(10) ** type_.scale
            middle = (
                int(Fraction(near) * steps) if isinstance(near, int | Decimal | float) and math.isfinite(near) else 0
            )
            around = max(1, abs(middle) >> 52)
            value = middle + random.choice((0, 0, 1, -1, random.randint(-around, around), random.randint(-300, 300)))
            most = 10**type_.precision - 1
            return Decimal(f"{max(-most, min(most, value))}E-{type_.scale}")
        case "float":
            base = float(near) if isinstance(near, int | Decimal | float) else random.uniform(-3, 3)
            number = random.choice((base, math.nextafter(base, math.inf), float("nan"), -0.0, random.uniform(-9, 9)))
            if type_.name == "float" and math.isfinite(number):
                number = struct.unpack("f", struct.pack("f", max(-3e38, min(3e38, number))))[0]
            return canonical("float", number)
        case "date":
            return a_day(random)
        case "timestamp" | "timestamp_ntz":
            return a_moment(random)
        case "boolean":
            return random.random() < 0.5
        case "binary":
            return random.choice((b"", b"a", b"\xff"))
    return random.choice(("", "5", "a", "ab", "2024-01-15"))


def a_number(random: Random) -> Any:
    big = random.choice((1, 2**24, 2**31, 2**53, 2**62, 10**18, 10**22, 10**30))
    number = random.choice((random.randint(-5, 5), random.randint(-big, big), big + random.randint(-2, 2)))
    match random.randrange(3):
        case 0:
            return number
        case 1:
            return Decimal(f"{number}E-{random.choice((0, 1, 2, 3, 12))}")
    special = (math.nan, math.inf, -math.inf, 0.1, -0.0, 2.5)
    return random.choice((float(number), math.nextafter(number, math.inf), float(number) / 8, random.choice(special)))


def a_bind_literal(random: Random, kind: str) -> Literal:
    """Of a kind that Spark compares with such columns."""
    match kind:
        case "int" | "decimal" | "float":
            if random.random() < 0.2:
                return lit(random.choice(("5", "-3", "0", "200", "123456789012345678")) if kind == "int" else "0.25")
            return lit(a_number(random))
        case "date" | "timestamp" | "timestamp_ntz":
            moment = a_moment(random)
            choices = [
                Literal("date", moment // DAY),
                lit(wall(moment // DAY * DAY).date().isoformat()),
                Literal("timestamp", moment),
                Literal("timestamp_ntz", moment),
                Literal("timestamp_local", moment),
                lit(wall(moment // 10**6 * 10**6).isoformat(" ")),
            ]
            return random.choice(choices)
        case "boolean":
            return random.choice((lit(True), lit("False")))
        case "binary":
            return lit(random.choice((b"", b"a", b"\xff")))
    return lit(random.choice(("", "5", "a", "ab")))


def a_bind_term(random: Random, name: str) -> Column | Cast:
    kind = SCHEMA[name].kind
    if random.random() < 0.8:
        return col(name)
    if kind in ("int", "decimal"):
        return Cast(col(name), Type("double"))
    return Cast(col(name), Type("date")) if kind in ("timestamp", "timestamp_ntz") else col(name)


def is_about_columns(p: Predicate) -> bool:
    return not any(isinstance(a, Opaque) for a in atoms_of(p)) and all(isinstance(t, Column) for t in terms_of(p))
