"""Builds the filters of look-ups with expressions of Spark's own, see `core/pruning/value_filter`.

    values      file, xxhash64(value)           of each row
    keys        block, key                      each once
    rows        block, gaps, low bytes          of the sorted keys; then a digest

Rows name their file by a number, the CRC of the file's name. Files with the same number share a place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Ints
from hedgerow.core.pruning.value_filter import MORE, Shape
from hedgerow.spark.compute.collect_stats import file_name
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.judged import WRITING
from hedgerow.spark.start.session import engines_off, spark_errors, temporary_settings
from hedgerow.spark.storage.filter_files import DIGEST_BYTES, ROW_GROUP_BYTES, FilterFiles, files_written
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.blocks import commit_options
from hedgerow.spark.write.by_number import divided

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FILE, VALUE = helper_name("file"), helper_name("value")
_MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class CountedValues:
    """The rows of some files by the files' numbers, and for each column about how many different values they have.

    `distinct`: in each file, in the order of `files`; `in_all`: in all files together.
    """

    files: Ints
    rows: Ints
    distinct: Mapping[str, Ints]
    in_all: Mapping[str, int]


def count_values(frame: DataFrame, columns: Sequence[str]) -> CountedValues:
    """Count the rows and the different values of columns, given as SQL, in each file of the frame."""
    from pyspark.sql import functions as f

    named = frame.select(_number(frame), *(f.expr(name).alias(str(i)) for i, name in enumerate(columns)))
    counts = [f.approx_count_distinct(str(i)).alias(str(i)) for i in range(len(columns))]
    with engines_off(frame.sparkSession):
        table = named.rollup(FILE).agg(f.count("*").alias("rows"), *counts).toArrow()
    is_all = table[FILE].is_null()
    total, by_file = table.filter(is_all), table.filter(pc.invert(is_all))
    rows = by_file["rows"].to_numpy()
    return CountedValues(
        by_file[FILE].to_numpy(),
        rows,
        {name: np.minimum(by_file[str(i)].to_numpy(), rows) for i, name in enumerate(columns)},
        {name: sum(total[str(i)].to_pylist()) for i, name in enumerate(columns)},
    )


def numbered(frame: DataFrame, column: str) -> DataFrame:
    """Return the values of a column, given as SQL, each with the number of its row's file, for `build_filter`."""
    from pyspark.sql import functions as f

    return frame.select(_number(frame), f.expr(column).alias(VALUE)).where(f"{VALUE} IS NOT NULL")


def build_filter(values: DataFrame, shape: Shape, numbers: Ints, folder: Folder, name: str, size: float) -> FilterFiles:
    """Write the filter of the values of all files into the folder `name`.

    `numbers`: the number of the file at each place. `size`: about how many bytes the filter will have."""
    from pyspark.sql import functions as f

    spark, path = values.sparkSession, f"{folder.full_path}/{name}"
    rows = max(1, min(shape.blocks, int(shape.blocks * ROW_GROUP_BYTES / max(1.0, size))))  # of a row group
    per_file = -(-shape.blocks // max(1, round(size / _MAX_FILE_BYTES)))
    files = -(-shape.blocks // per_file)
    every_block = spark.range(shape.blocks).selectExpr("id AS block", "CAST(NULL AS BIGINT) AS key")
    with temporary_settings(spark, WRITING):  # no row that cannot be read is left out, and no file is divided
        every_key = _keys(values, shape, numbers).unionAll(every_block)
        keys = every_key.groupBy("block").agg(f.sort_array(f.collect_list("key")).alias("keys"))
        packed = keys.select("block", *_packed(shape))
        low = f.concat("low", f.expr(_digest(name, "low"))).cast("binary").alias("low")
        place = f.expr(f"CAST(block DIV {per_file} AS INT)")
        placed = divided(packed.select("block", "gaps", low), files, place).sortWithinPartitions("block")
        options = {"parquet.enable.dictionary": "false", "parquet.block.row.count.limit": str(rows)}
        options |= {"parquet.column.statistics.enabled": "false"}  # a look-up reads the footer, but no statistics
        placed.write.options(**commit_options(spark, path), **options).parquet(path, compression="zstd")
    sizes = {n: b for n, b in folder.sizes(name).items() if n.startswith("part-")}
    return files_written(folder, name, sizes, shape, per_file)


def is_intact(stored: FilterFiles) -> bool:
    """True if a filter has all its blocks, each as it was sealed."""
    from pyspark.sql import functions as f

    spark = stored.folder.spark
    digest = _digest(stored.name, f"substring(low, 1, length(low) - {DIGEST_BYTES})")
    try:
        with engines_off(spark):
            rows = spark.read.parquet(f"{stored.folder.full_path}/{stored.name}")
            good = rows.where(f"substring(low, -{DIGEST_BYTES}) = {digest}")
            return [tuple(row) for row in good.agg(f.count("*"), f.countDistinct("block")).collect()] == [
                (stored.shape.blocks, stored.shape.blocks)
            ]
    except spark_errors():  # a file is missing, or is no Parquet
        return False


def _number(frame: DataFrame) -> Column:
    from pyspark.sql import functions as f

    return f.crc32(file_name(frame).cast("binary")).alias(FILE)


def _keys(values: DataFrame, shape: Shape, numbers: Ints) -> DataFrame:
    """Return the keys of the values, each once and counted from its block's first key."""
    from pyspark.sql import functions as f

    places = values.sparkSession.createDataFrame(pa.table({FILE: numbers, "place": range(len(numbers))}))
    short = values.selectExpr(FILE, f"pmod(xxhash64({VALUE}), {shape.hashes}L) AS short")
    keys = short.join(f.broadcast(places), FILE).selectExpr(
        f"short DIV {shape.block_hashes} AS block", f"short % {shape.block_hashes} * {shape.files} + place AS key"
    )
    return keys.distinct()


def _packed(shape: Shape) -> list[Column]:
    """Return the gaps and the low bytes of the sorted keys of a block, see `Shape`."""
    from pyspark.sql import functions as f

    bits, keys = 8 * shape.low_bytes, f.col("keys")

    def gap(key: Column, i: Column) -> Column:
        return f.shiftright(key, bits) - f.coalesce(f.shiftright(f.get(keys, i - 1), bits), f.lit(0))

    def in_bytes(gap: Column) -> Column:
        more = f.repeat(f.lit(f"{MORE:X}"), f.floor(gap / MORE).cast("int"))
        return f.concat(more, f.lpad(f.hex(gap % MORE), 2, "0"))

    def low(key: Column) -> Column:
        return f.lpad(f.hex(key.bitwiseAND((1 << bits) - 1)), 2 * shape.low_bytes, "0")

    digits = {"gaps": f.transform(f.transform(keys, gap), in_bytes), "low": f.transform(keys, low)}
    return [f.unhex(f.array_join(of_keys, "")).alias(name) for name, of_keys in digits.items()]


def _digest(name: str, low: str) -> str:
    """Return SQL for the digest of a block with these low bytes."""
    sealed = f"concat(gaps, {low}, CAST(concat('{name}:', block) AS BINARY))"
    return f"unhex(substring(sha2({sealed}, 256), 1, {2 * DIGEST_BYTES}))"
