"""Writes one file for each block: Spark sends each row to the task with the number of its block."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.assign_blocks import BLOCK, order_inside, settings_for, with_block
from hedgerow.spark.compute.checksum import Checksum, observed
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.session import configured
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.by_number import divided
from hedgerow.spark.write.exact_writing import exact_writing
from hedgerow.spark.write.writing import Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_blocks(
    frame: DataFrame, layout: Layout, schema: Mapping[str, Type], path: str, how: Writing, joins: Joins = NO_JOINS
) -> Checksum:
    """Write a file `part-<block>-...` for each block that has rows; return the checksum of the rows that were read.

    A block with more than `max_block_rows` rows becomes several files.
    """
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    with (
        exact_writing(spark, schema),
        configured(spark, **settings_for(layout)),
        observed(frame) as (watched, checksums),
    ):
        routed = divided(with_block(watched, layout, schema, joins), layout.blocks, f.col(BLOCK)).drop(BLOCK)
        order = order_inside(layout, how.sort_by, how.by_key)
        if order:
            routed = routed.sortWithinPartitions(*order)
        writer = routed.write.mode("append").options(**commit_options(spark, path)).options(**how.options)
        if how.max_block_rows:
            writer = writer.option("maxRecordsPerFile", how.max_block_rows)
        writer.parquet(path)
    return checksums[0]


def commit_options(spark: SparkSession, path: str) -> dict[str, str]:
    """Return options for a writer into this folder; in an object store, its tasks move their files, not the driver.

    Files of a task that failed after its first move may stay, so the caller has to check all rows after the write."""
    return {"mapreduce.fileoutputcommitter.algorithm.version": "2"} if Folder(spark, path).is_store else {}


def block_of_file(path: str) -> int:
    """Return the block in a file's name, -1 if the name has none."""
    match = re.match(r"part-(\d+)-", path.rpartition("/")[2])
    return int(match[1]) if match else -1
