"""Computes a checksum of all rows and columns that ignores the order of rows; it shows that no row was lost or changed.

Checksums can be added: after an append, a table's checksum is its old one plus the one of the new rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.session import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Checksum:
    """A number of rows, and the sums of the lower and the upper halves of their 64-bit hashes."""

    rows: int
    low: int
    high: int

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.low:x}-{self.high:x}"

    @staticmethod
    def of_sums(sums: Mapping[str, int | None]) -> Checksum:
        """Return the checksum of rows with these `hash_sums`."""
        first, second, third, fourth = (sums[name] or 0 for name in _PARTS)
        return Checksum(sums["rows"] or 0, first + (second << _PART_BITS), third + (fourth << _PART_BITS))


def checksum(frame: DataFrame) -> Checksum:
    row = with_hash(frame).agg(*hash_sums()).first()
    return Checksum.of_sums(row.asDict() if row else {})


def same_rows(went_in: Checksum, came_out: Checksum, source: DataFrame, written: DataFrame) -> Checksum:
    """Return the checksum of the rows; HedgerowError if the written rows differ from the rows that were read.

    A checksum that was observed during a write counts a task twice if the task ran twice. So if the two checksums
    differ, both are computed again.
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
    """Yield the frame, and a list that gets the checksum of the columns `of` when the frame is written."""
    from pyspark.sql import Observation

    observation = Observation()
    checksums: list[Checksum] = []
    yield with_hash(frame, of).observe(observation, *hash_sums()).drop(HASH), checksums
    try:
        checksums.append(Checksum.of_sums(observation.get))
    except spark_errors():  # Spark ran no job, because it saw that there are no rows; `same_rows` checks that
        checksums.append(Checksum(0, 0, 0))


HASH = helper_name("hash")
_PARTS, _PART_BITS = ("first", "second", "third", "fourth"), 16
_SPECIAL_TYPES = re.compile(r"map<|variant|collate")  # Spark's hash refuses these types, or ignores differences


def with_hash(frame: DataFrame, of: Sequence[str] = ("*",)) -> DataFrame:
    """Return the frame with one more column for `hash_sums`: the hash of each row's columns `of`."""
    return frame.withColumn(HASH, _hash(frame.select(*of)))


def hash_sums() -> list[Column]:
    """Return the number of rows and the sums of their hashes, in parts so small that no sum can overflow."""
    from pyspark.sql import functions as f

    mask = (1 << _PART_BITS) - 1
    parts = [f"sum(shiftrightunsigned({HASH}, {i * _PART_BITS}) & {mask}L)" for i in range(len(_PARTS))]
    return [f.expr("count(*)").alias("rows"), *(f.expr(p).alias(name) for p, name in zip(parts, _PARTS, strict=True))]


def _hash(frame: DataFrame) -> Column:
    """Return a 64-bit hash of each row. It ignores the sign of zero, and the place of NULLs in a nested value.

    Spark's own hash skips NULLs, refuses maps and variants, and hashes collated strings as their collation compares
    them. So a mask of NULLs is added; a map becomes a list of entries, a variant its JSON and type, and a collated
    string its bytes.
    """
    from pyspark.sql import functions as f

    names = [(quote_name(field.name), field.dataType) for field in frame.schema.fields]
    values = ", ".join(_hashable(name, type_) for name, type_ in names)
    nulls = ", ".join(f"{name} IS NULL" for name, _ in names)
    return f.expr(f"xxhash64({values}, {nulls})").alias(HASH)


def _hashable(value: str, type_: DataType, depth: int = 0) -> str:
    """Return the SQL of a value in a form that Spark's hash accepts, and that differs for different values."""
    from pyspark.sql import types as t

    x = f"x{depth}"
    match type_:
        case _ if not _SPECIAL_TYPES.search(type_.simpleString()):
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
