"""A checksum of all rows and columns that does not depend on row order: it proves that no row was lost or changed.

Checksums add up: after an append, a table's checksum is the sum of the old one and that of the new rows.
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
    """`low` and `high` are sums of the halves of each row's 64-bit hash."""

    rows: int
    low: int
    high: int

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, self.low + other.low, self.high + other.high)

    def to_dict(self) -> dict[str, int]:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        return {"rows": self.rows, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{self.rows} rows, {self.low:x}-{self.high:x}"

    @staticmethod
    def of_sums(sums: Mapping[str, int | None]) -> Checksum:
        """The checksum of rows whose `hash_sums` these are."""
        first, second, third, fourth = (sums[name] or 0 for name in _PARTS)
        return Checksum(sums["rows"] or 0, first + (second << _PART_BITS), third + (fourth << _PART_BITS))


def checksum(frame: DataFrame) -> Checksum:
    row = with_hash(frame).agg(*hash_sums()).first()
    return Checksum.of_sums(row.asDict() if row else {})


def same_rows(went_in: Checksum, came_out: Checksum, source: DataFrame, written: DataFrame) -> Checksum:
    """The checksum of both; HedgerowError if the written rows differ from those that were read.

    A checksum observed during a write counts a task twice if it ran twice, so a difference is checked by a new pass.
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
    """The frame, and a list that gets the checksum of the columns `of` when the frame is written; no second pass."""
    from pyspark.sql import Observation

    observation = Observation()
    checksums: list[Checksum] = []
    yield with_hash(frame, of).observe(observation, *hash_sums()).drop(HASH), checksums
    try:
        checksums.append(Checksum.of_sums(observation.get))
    except spark_errors():  # Spark saw that there are no rows, and ran no job; if it is wrong, `same_rows` finds out
        checksums.append(Checksum(0, 0, 0))


HASH = helper_name("hash")
_PARTS, _PART_BITS = ("first", "second", "third", "fourth"), 16
_SPECIAL_TYPES = re.compile(r"map<|variant|collate")  # Spark's hash refuses these types, or ignores differences


def with_hash(frame: DataFrame, of: Sequence[str] = ("*",)) -> DataFrame:
    """The frame with one more column for `hash_sums`: a hash of each row's columns `of`."""
    return frame.withColumn(HASH, _hash(frame.select(*of)))


def hash_sums() -> list[Column]:
    """The rows of a frame and the sums of their hashes, in parts so small that no number of rows overflows."""
    from pyspark.sql import functions as f

    mask = (1 << _PART_BITS) - 1
    parts = [f"sum(shiftrightunsigned({HASH}, {i * _PART_BITS}) & {mask}L)" for i in range(len(_PARTS))]
    return [f.expr("count(*)").alias("rows"), *(f.expr(p).alias(name) for p, name in zip(parts, _PARTS, strict=True))]


def _hash(frame: DataFrame) -> Column:
    """A 64-bit hash of each row, in which every difference counts but two: where in a nested value NULLs stand, and the
    sign of zero.

    Spark's own hash skips NULLs, refuses maps and variants, and hashes collated strings as their collation compares
    them. So a mask of NULLs is added, maps become lists of entries, variants JSON and type, such strings bytes.
    """
    from pyspark.sql import functions as f

    names = [(quote_name(field.name), field.dataType) for field in frame.schema.fields]
    values = ", ".join(_hashable(name, type_) for name, type_ in names)
    nulls = ", ".join(f"{name} IS NULL" for name, _ in names)
    return f.expr(f"xxhash64({values}, {nulls})").alias(HASH)


def _hashable(value: str, type_: DataType, depth: int = 0) -> str:
    """The SQL of a value in a form that Spark's hash takes and tells apart from all others."""
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
