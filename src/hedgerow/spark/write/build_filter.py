"""Builds the filters of look-ups with expressions of Spark's own, see `core/pruning/value_filter`.

    values      file, xxhash64(value)           of each row
    words       file, block, its words          bit_or of the values' bits, first in each task
    rows        block, the words of all files   side by side, each with its file's number; then a digest

The number of a file is the CRC of its name. Two files with the same number get the same filter, with both's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from hedgerow.core.arrays import Ints
from hedgerow.core.pruning.value_filter import SALTS, Shape
from hedgerow.spark.compute.collect_stats import file_name
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.session import engines_off, spark_errors
from hedgerow.spark.storage.filter_files import FilterFiles
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.blocks import commit_options
from hedgerow.spark.write.by_number import divided

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FILE, _VALUE = helper_name("file"), helper_name("value")
_MAX_FILE_BYTES, _ROW_GROUP_BYTES = 64 << 20, 64 << 10


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
        table = named.rollup(_FILE).agg(f.count("*").alias("rows"), *counts).toArrow()
    is_all = table[_FILE].is_null()
    total, by_file = table.filter(is_all), table.filter(pc.invert(is_all))
    rows = by_file["rows"].to_numpy()
    return CountedValues(
        by_file[_FILE].to_numpy(),
        rows,
        {name: np.minimum(by_file[str(i)].to_numpy(), rows) for i, name in enumerate(columns)},
        {name: sum(total[str(i)].to_pylist()) for i, name in enumerate(columns)},
    )


def build_filter(frame: DataFrame, column: str, shape: Shape, folder: Folder, name: str, size: float) -> FilterFiles:
    """Write the filter of a column, given as SQL, of all files of the frame into the folder `name`.

    `size`: about how many bytes it will have."""
    from pyspark.sql import functions as f

    spark, path = frame.sparkSession, f"{folder.full_path}/{name}"
    rows = max(1, min(shape.blocks, int(shape.blocks * _ROW_GROUP_BYTES / max(1.0, size))))  # of a row group
    per_file = -(-shape.blocks // max(1, round(size / _MAX_FILE_BYTES)))
    files = -(-shape.blocks // per_file)
    every_block = spark.range(shape.blocks).selectExpr("id AS block", "CAST(NULL AS STRING) AS words")
    words = f.array_join(f.sort_array(f.collect_list("words")), "")
    with engines_off(spark):
        packed = _words(frame, column, shape).unionAll(every_block).groupBy("block").agg(f.unhex(words).alias("words"))
        place = f.expr(f"CAST(block DIV {per_file} AS INT)")
        sealed = f.concat("words", f.concat(f.lit(f"{name}:"), f.col("block").cast("string")).cast("binary"))
        data = f.concat("words", f.unhex(f.sha2(sealed, 256))).alias("data")
        placed = divided(packed.select("block", data), files, place).sortWithinPartitions("block")
        options = {"parquet.enable.dictionary": "false", "parquet.block.row.count.limit": str(rows)}
        placed.write.options(**commit_options(spark, path), **options).parquet(path, compression="zstd")
    sizes = {n: b for n, b in folder.sizes(name).items() if n.startswith("part-")}
    written = tuple(sorted(sizes.items()))
    return FilterFiles(folder, name, written, shape, per_file)


def is_intact(stored: FilterFiles) -> bool:
    """True if a filter has all its blocks, each as it was sealed."""
    from pyspark.sql import functions as f

    spark = stored.folder.spark
    sealed = f"concat(substring(data, 1, length(data) - 32), CAST(concat('{stored.name}:', block) AS BINARY))"
    try:
        with engines_off(spark):
            rows = spark.read.parquet(f"{stored.folder.full_path}/{stored.name}")
            good = rows.where(f"substring(data, -32) = unhex(sha2({sealed}, 256))")
            return [tuple(row) for row in good.agg(f.count("*"), f.countDistinct("block")).collect()] == [
                (stored.shape.blocks, stored.shape.blocks)
            ]
    except spark_errors():  # a file is missing, or is no Parquet
        return False


def _number(frame: DataFrame) -> Column:
    from pyspark.sql import functions as f

    return f.crc32(file_name(frame).cast("binary")).alias(_FILE)


def _words(frame: DataFrame, column: str, shape: Shape) -> DataFrame:
    """Return for each file and block with values the file's number and the block's words, as hexadecimal digits."""
    from pyspark.sql import functions as f

    values = frame.select(_number(frame), f.expr(column).alias(_VALUE)).where(f"{_VALUE} IS NOT NULL")
    hashes = values.selectExpr(_FILE, f"xxhash64({_VALUE}) AS h")
    halves = hashes.selectExpr(
        _FILE, f"shiftright(shiftrightunsigned(h, 32) * {shape.blocks}L, 32) AS block", "h & 4294967295L AS low"
    )
    bits = [
        f.expr(f"bit_or(shiftleft(1L, CAST(shiftright(low * {salt}L, 26) & 63 AS INT)))").alias(f"word{i}")
        for i, salt in enumerate(SALTS[: shape.words])
    ]
    words = halves.groupBy(_FILE, "block").agg(*bits)
    digits = [f"lpad(hex({_FILE}), 8, '0')", *(f"lpad(hex(word{i}), 16, '0')" for i in range(shape.words))]
    return words.selectExpr("block", f"concat({', '.join(digits)}) AS words")
