"""Builds the filters of look-ups, see `core/pruning/value_filter`.

    values      entry, xxhash64(value)          of each row
    keys        block, key                      sorted by Spark
    rows        block, gaps, low bytes          of the keys, each once, packed in Python; then a digest

An entry is a file or a row group. Rows name theirs by a number, the CRC of its key, see `Entries.keys`. Entries with
the same number share a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Ints
from hedgerow.core.pruning.value_filter import Shape
from hedgerow.spark.compute.collect_stats import Entries
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.judged import WRITING
from hedgerow.spark.start.session import engines_off, spark_errors, temporary_settings
from hedgerow.spark.start.ship import ship_modules
from hedgerow.spark.storage.filter_files import DIGEST_BYTES, ROW_GROUP_BYTES, FilterFiles, files_written, seal
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.blocks import commit_options
from hedgerow.spark.write.by_number import divided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENTRY, VALUE = helper_name("entry"), helper_name("value")
_MAX_FILE_BYTES = 64 << 20
_BLOCKS_OF_A_TASK = 4000  # four million keys, which are sorted in memory
_BATCH_ROWS, _PACKED = 1 << 18, "block bigint, gaps binary, low binary"


@dataclass(frozen=True)
class CountedValues:
    """The rows of some entries by their numbers, and for each column about how many different values they have.

    `distinct`: in each entry, in the order of `entries`; `in_all`: in all entries together.
    """

    entries: Ints
    rows: Ints
    distinct: Mapping[str, Ints]
    in_all: Mapping[str, int]


def numbered(frame: DataFrame, entries: Entries) -> DataFrame:
    """Return the rows of entries, each with the number of its entry."""
    from pyspark.sql import functions as f

    key = f.concat_ws(":", *(f.col(name).cast("string") for name in entries.columns))
    return entries.marked(frame).withColumn(ENTRY, f.crc32(key.cast("binary")))


def count_values(rows: DataFrame, columns: Sequence[str]) -> CountedValues:
    """Count the numbered rows and the different values of columns, given as SQL, in each entry."""
    from pyspark.sql import functions as f

    named = rows.select(ENTRY, *(f.expr(name).alias(str(i)) for i, name in enumerate(columns)))
    counts = [f.approx_count_distinct(str(i)).alias(str(i)) for i in range(len(columns))]
    with engines_off(rows.sparkSession):
        table = named.rollup(ENTRY).agg(f.count("*").alias("rows"), *counts).toArrow()
    is_all = table[ENTRY].is_null()
    total, by_entry = table.filter(is_all), table.filter(pc.invert(is_all))
    numbers = by_entry["rows"].to_numpy()
    return CountedValues(
        by_entry[ENTRY].to_numpy(),
        numbers,
        {name: np.minimum(by_entry[str(i)].to_numpy(), numbers) for i, name in enumerate(columns)},
        {name: sum(total[str(i)].to_pylist()) for i, name in enumerate(columns)},
    )


def values_of(rows: DataFrame, column: str) -> DataFrame:
    """Return the values of a column, given as SQL, of numbered rows, for `build_filter`."""
    from pyspark.sql import functions as f

    return rows.select(ENTRY, f.expr(column).alias(VALUE)).where(f"{VALUE} IS NOT NULL")


def build_filter(values: DataFrame, shape: Shape, numbers: Ints, folder: Folder, name: str, size: float) -> FilterFiles:
    """Write the filter of the values of all entries into the folder `name`.

    `numbers`: the number of the entry at each place. `size`: about how many bytes the filter will have."""
    from pyspark.sql import functions as f

    spark, path = values.sparkSession, f"{folder.full_path}/{name}"
    rows = max(1, min(shape.blocks, int(shape.blocks * ROW_GROUP_BYTES / max(1.0, size))))  # of a row group
    per_file = -(-shape.blocks // max(1, round(size / _MAX_FILE_BYTES)))
    files = -(-shape.blocks // per_file)
    every_block = spark.range(shape.blocks).selectExpr("id AS block", "CAST(NULL AS BIGINT) AS key")
    ship_modules(spark)
    tasks = -(-shape.blocks // _BLOCKS_OF_A_TASK)
    # No row that cannot be read is left out, and no file is divided.
    with temporary_settings(spark, {**WRITING, "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH_ROWS)}):
        every_key = _keys(values, shape, numbers).unionAll(every_block).repartition(tasks, "block")
        packed = every_key.sortWithinPartitions("block", "key").mapInArrow(_packing(name, shape), _PACKED)
        place = f.expr(f"CAST(block DIV {per_file} AS INT)")
        placed = divided(packed, files, place).sortWithinPartitions("block")
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


def _keys(values: DataFrame, shape: Shape, numbers: Ints) -> DataFrame:
    """Return the key of each value, counted from its block's first key."""
    from pyspark.sql import functions as f

    places = values.sparkSession.createDataFrame(pa.table({ENTRY: numbers, "place": range(len(numbers))}))
    short = values.selectExpr(ENTRY, f"pmod(xxhash64({VALUE}), {shape.hashes}L) AS short")
    keys = short.join(f.broadcast(places), ENTRY).selectExpr(
        f"short DIV {shape.block_hashes} AS block", f"short % {shape.block_hashes} * {shape.files} + place AS key"
    )
    width = shape.block_width

    def each_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Leave out keys that are twice in a batch, so that a value of most rows does not fill one task."""
        for batch in filter(len, batches):
            every = np.unique(batch.column(0).to_numpy() * width + batch.column(1).to_numpy())
            yield pa.record_batch([pa.array(every // width), pa.array(every % width)], names=["block", "key"])

    return keys.mapInArrow(each_once, "block bigint, key bigint")


def _packing(name: str, shape: Shape) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that packs keys, sorted by block and key, to one row a block; NULL is no key."""

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rest = np.zeros((2, 0), np.int64)  # of the last block, which the next batch may go on with
        for batch in filter(len, batches):
            new = np.array([batch.column(0).to_numpy(), batch.column(1).fill_null(-1).to_numpy()])
            both = np.concatenate([rest, new], axis=1)
            end = int(np.searchsorted(both[0], both[0, -1]))
            same = np.unique(both[1, end:])
            rest = np.array([np.full(len(same), both[0, -1]), same])
            if end:
                yield _rows_of_blocks(name, shape, both[:, :end])
        if rest.size:
            yield _rows_of_blocks(name, shape, rest)

    return packed


def _rows_of_blocks(name: str, shape: Shape, sorted_keys: Ints) -> pa.RecordBatch:
    """Return the row of each block, from the blocks and keys of all."""
    numbers, first = np.unique(sorted_keys[0], return_index=True)
    rows: dict[str, list[object]] = {"block": numbers.tolist(), "gaps": [], "low": []}
    for number, keys in zip(numbers.tolist(), np.split(sorted_keys[1], first[1:]), strict=True):
        gaps, low = shape.packed(np.unique(keys[keys >= 0]))
        rows["gaps"].append(gaps)
        rows["low"].append(low + seal(name, number, gaps + low))
    types = pa.schema([("block", pa.int64()), ("gaps", pa.binary()), ("low", pa.binary())])
    return pa.RecordBatch.from_pydict(rows, types)


def _digest(name: str, low: str) -> str:
    """Return SQL for the digest of a block with these low bytes."""
    sealed = f"concat(gaps, {low}, CAST(concat('{name}:', block) AS BINARY))"
    return f"unhex(substring(sha2({sealed}, 256), 1, {2 * DIGEST_BYTES}))"
