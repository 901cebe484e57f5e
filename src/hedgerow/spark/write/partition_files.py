"""Sends each row to the task that writes its file, and sorts the rows of each file.

A file has the rows of a block, or of `blocks_per_file` neighbouring ones, one block after the other. A layout ignores
partitions, so a block may have rows in many of them. Inside a partition, neighbouring blocks share a file until it has
the rows of so many full blocks:

    partition 2024-05   blocks  3: 900   4: 50   9: 80   12: 1200     rows
                        files   [3, 4, 9]                [12]         at 1000 rows a file
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Ints
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.assign_blocks import BLOCK, order_inside, with_block
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.write.by_number import divided
from hedgerow.spark.write.writing import Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE, _ROWS, _BLOCK, _PART = map(helper_name, ("file", "rows", "known_block", "partition"))


def in_files(
    frame: DataFrame,
    layout: Layout,
    schema: Mapping[str, Type],
    how: Writing,
    joins: Joins = NO_JOINS,
    partitions: Sequence[str] = (),
    block_rows: int = 1,
) -> DataFrame:
    """Return the rows with a Spark partition for each file, each with rows of only one partition of the table."""
    from pyspark.sql import functions as f

    routed = with_block(frame, layout, schema, joins)
    if partitions:
        files = _of_partitions(routed, partitions, block_rows * how.blocks_per_file)
    else:
        number = f.expr(f"CAST({BLOCK} DIV {how.blocks_per_file} AS INT)")
        files = divided(routed, -(-layout.blocks // how.blocks_per_file), number)
    order = [*([BLOCK] if how.blocks_per_file > 1 else []), *order_inside(layout, how.sort_by, how.by_key)]
    if order:
        # Partitions come first in the order, because Delta's writer would sort by them again, and lose the order.
        files = files.sortWithinPartitions(*map(quote_name, partitions), *order)
    return files.drop(BLOCK)


def _of_partitions(routed: DataFrame, partitions: Sequence[str], file_rows: int) -> DataFrame:
    """Return the rows with a Spark partition for each file, of about so many rows, of a partitioned table."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import IntegerType, StructField, StructType

    names = [quote_name(c) for c in partitions]
    counts = routed.groupBy(*names, BLOCK).agg(f.count("*").alias(_ROWS)).toArrow()
    files = numbered(counts, partitions, file_rows)
    spark = routed.sparkSession
    keys = pa.table({**{f"{_PART}_{i}": counts[c] for i, c in enumerate(partitions)}, _BLOCK: counts[BLOCK]})
    # Without these types, Spark would read a time without a zone as one in the session's zone.
    types = [*(field.dataType for field in routed.select(*names).schema.fields), IntegerType(), IntegerType()]
    struct = StructType(list(map(StructField, [*keys.column_names, FILE], types)))
    places = spark.createDataFrame(keys.append_column(FILE, pa.array(files, pa.int32())), struct)
    on = f.expr(" AND ".join([*(f"{name} <=> {_PART}_{i}" for i, name in enumerate(names)), f"{BLOCK} = {_BLOCK}"]))
    # With an outer join, a row without a file number makes the write fail; an inner join would drop the row.
    joined = routed.join(f.broadcast(places), on, "left").drop(*keys.column_names)
    return divided(joined, int(files.max(initial=0)) + 1, f.col(FILE)).drop(FILE)


def numbered(counts: pa.Table, partitions: Sequence[str], file_rows: int) -> Ints:
    """Return the file number of each counted (partition, block), in the table's order."""
    codes = [counts[c].combine_chunks().dictionary_encode("encode").indices for c in partitions]
    owner = owners(list(map(np.asarray, codes)))
    return file_numbers(owner, counts[BLOCK].to_numpy(), counts[_ROWS].to_numpy(), file_rows)


def owners(codes: Sequence[Ints]) -> Ints:
    """Return a number for each partition, from a code for each of its columns."""
    return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def file_numbers(owner: Ints, blocks: Ints, rows: Ints, file_rows: int) -> Ints:
    """Return the file of each part of a partition, `owner`, that is in one block and has so many rows."""
    files = np.zeros(len(rows), np.int64)
    file, filled, before = -1, 0, -1
    for i in np.lexsort((blocks, owner)).tolist():
        if owner[i] != before or filled >= file_rows:
            file, filled = file + 1, 0
        files[i], filled, before = file, filled + int(rows[i]), owner[i]
    return files
