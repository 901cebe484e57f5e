"""Column types under Spark's names; each has a *kind*, which decides how its values compare."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

# Values of one kind share one total order; values of different kinds are never compared.
INT = "int"
DECIMAL = "decimal"
FLOAT = "float"
STRING = "string"
BINARY = "binary"
BOOLEAN = "boolean"
DATE = "date"
TIME = "time"
TIMESTAMP = "timestamp"
TIMESTAMP_NTZ = "timestamp_ntz"
NOT_PUSHED = (TIMESTAMP_NTZ,)  # Spark 4.1 and 4.2 skip no part of a Parquet file by the bounds of these
TIMESTAMP_LOCAL = "timestamp_local"  # a literal in the session's zone, until `binding` replaces it
OTHER = "other"

_KINDS = {
    "tinyint": INT,
    "smallint": INT,
    "int": INT,
    "bigint": INT,
    "float": FLOAT,
    "double": FLOAT,
    "decimal": DECIMAL,
    "string": STRING,
    "binary": BINARY,
    "boolean": BOOLEAN,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "text": "string",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
}
_TIME_PRECISION = 6  # the precision of TIME without a number


@dataclass(frozen=True, slots=True)
class Type:
    """A Spark SQL type; its kind is `other` if Hedgerow does not know exactly how its values compare.

    >>> Type.parse("DECIMAL(12, 2)"), Type.parse("array<int>").kind, Type.parse("time(3)").kind
    (Type(name='decimal', precision=12, scale=2), 'other', 'other')

    The precision of a TIME is that of its seconds.
    """

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def kind(self) -> str:
        if self.name == "time" and self.precision != _TIME_PRECISION:
            return OTHER  # Spark compares only times of one precision, and a literal has six digits
        return _KINDS.get(self.name, OTHER)

    @staticmethod
    def parse(text: str) -> Type:
        name = " ".join(text.lower().split())
        if re.fullmatch(r"varchar ?\( ?\d+ ?\)", name):
            return Type("string")  # compares like a string; CHAR(n) is padded, so its kind is `other`
        name = _ALIASES.get(name, name)
        decimal = re.fullmatch(r"(?:decimal|dec|numeric)(?: ?\( ?(\d+) ?(?:, ?(\d+) ?)?\))?", name)
        if decimal:
            return Type("decimal", int(decimal[1] or 10), int(decimal[2] or 0))
        time = re.fullmatch(r"time(?: ?\( ?(\d) ?\))?", name)
        return Type("time", int(time[1] or _TIME_PRECISION)) if time else Type(name)

    @staticmethod
    def of_arrow(arrow: pa.DataType) -> Type:
        t = pa.types
        if t.is_dictionary(arrow):
            return Type.of_arrow(arrow.value_type)
        if t.is_decimal(arrow):
            return Type("decimal", arrow.precision, arrow.scale)
        if t.is_timestamp(arrow):
            if arrow.unit == "ns":
                return Type("other")  # finer than Spark's microseconds: rounding would change the order
            return Type("timestamp" if arrow.tz else "timestamp_ntz")
        if t.is_time(arrow):
            return Type("time", _TIME_PRECISION)
        if t.is_uint64(arrow):
            return Type("decimal", 20, 0)
        for test, name in _ARROW:
            if test(arrow):
                return Type(name)
        return Type("other")

    def __str__(self) -> str:
        match self.name:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "time":
                return f"time({self.precision})"
        return self.name


_ARROW = (
    (pa.types.is_int8, "tinyint"),
    (lambda t: pa.types.is_int16(t) or pa.types.is_uint8(t), "smallint"),
    (lambda t: pa.types.is_int32(t) or pa.types.is_uint16(t), "int"),
    (lambda t: pa.types.is_int64(t) or pa.types.is_uint32(t), "bigint"),
    (lambda t: pa.types.is_float32(t) or pa.types.is_float16(t), "float"),
    (pa.types.is_float64, "double"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t), "binary"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
)
