"""A checksum of all rows and all columns that does not depend on their order: the proof that nothing was lost.

It adds up, so the checksum of a table after an append is the sum of the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.spark.helper_columns import helper_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_HALF = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Checksum:
    """`low` and `high` are sums of the halves of each row's 64-bit hash."""

    rows: int
    low: int
    high: int

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.low:x}-{self.high:x}"


def checksum(frame: DataFrame) -> Checksum:
    row = frame.select(_hash(frame)).agg(*_sums()).first()
    return _checksum(row.asDict() if row else {})


def same_rows(went_in: Checksum, came_out: Checksum, source: DataFrame, written: DataFrame) -> Checksum:
    """The checksum of both; HedgerowError if the rows that were written are not those that were read.

    What a query observes in passing counts a task twice that ran twice, so a difference is looked at again.
    """
    if went_in != came_out:
        went_in, came_out = checksum(source), checksum(written)
    if went_in != came_out:
        raise HedgerowError(
            f"the rows that were written are not those that were read ({came_out} instead of {went_in}), so nothing is "
            "changed: the source changed meanwhile, or this session writes values in another way than it reads them"
        )
    return went_in


@contextmanager
def observed(frame: DataFrame, of: Sequence[str] = ("*",)) -> Iterator[tuple[DataFrame, list[Checksum]]]:
    """The frame, and a list that has the checksum of some columns once it was written: no pass of its own."""
    from pyspark.sql import Observation

    noted = Observation()
    found: list[Checksum] = []
    hashed = frame.withColumn(_NAME, _hash(frame.select(*of))).observe(noted, *_sums()).drop(_NAME)
    yield hashed, found
    found.append(_checksum(noted.get))


_NAME = helper_name("hash")
_ODD = re.compile(r"map<|variant|collate")  # types whose values Spark's hash refuses, or takes for equal to others


def _sums() -> list[Column]:
    from pyspark.sql import functions as f

    return [
        f.expr("count(*)").alias("rows"),
        f.expr(f"sum({_NAME} & {_HALF}L)").alias("low"),
        f.expr(f"sum(shiftrightunsigned({_NAME}, 32))").alias("high"),
    ]


def _checksum(found: dict[str, Any]) -> Checksum:
    return Checksum(found["rows"], found["low"] or 0, found["high"] or 0)


def _hash(frame: DataFrame) -> Column:
    """Spark's hash skips NULLs, takes no maps and variants, and texts of a collation as the collation compares them.

    NULLs are hashed as a mask, maps as lists of entries, variants as their JSON and types, such texts as bytes.
    """
    from pyspark.sql import functions as f

    names = [(quote_name(field.name), field.dataType) for field in frame.schema.fields]
    values = ", ".join(_hashable(name, type_) for name, type_ in names)
    nulls = ", ".join(f"{name} IS NULL" for name, _ in names)
    return f.expr(f"xxhash64({values}, {nulls})").alias(_NAME)


def _hashable(value: str, type_: DataType, depth: int = 0) -> str:
    from pyspark.sql import types as t

    x = f"x{depth}"
    match type_:
        case _ if not _ODD.search(type_.simpleString()):
            return value
        case t.StringType():
            return f"CAST({value} AS BINARY)"
        case t.VariantType():
            return f"struct(to_json({value}), schema_of_variant({value}))"
        case t.MapType():
            entries = t.ArrayType(t.StructType().add("key", type_.keyType).add("value", type_.valueType))
            return _hashable(f"map_entries({value})", entries, depth)
        case t.ArrayType():
            return f"transform({value}, {x} -> {_hashable(x, type_.elementType, depth + 1)})"
        case t.StructType():
            fields = (f"{value}.{quote_name(field.name)}" for field in type_.fields)
            parts = (_hashable(v, field.dataType, depth) for v, field in zip(fields, type_.fields, strict=True))
            return f"struct({', '.join(parts)})"
    return value
