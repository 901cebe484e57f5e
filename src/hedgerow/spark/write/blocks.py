"""Writes a file for each block, or for some neighbouring blocks: Spark sends each row to the task of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.types import Type
from hedgerow.spark.compute.assign_blocks import settings_for
from hedgerow.spark.compute.checksum import Checksum, observed
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.start.session import configured
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.exact_writing import exact_writing
from hedgerow.spark.write.partition_files import in_files
from hedgerow.spark.write.writing import Writing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_blocks(
    frame: DataFrame, layout: Layout, schema: Mapping[str, Type], path: str, how: Writing, joins: Joins = NO_JOINS
) -> Checksum:
    """Write a file `part-<number>-...` for each block, or each run of `blocks_per_file` blocks, that has rows.

    Return the checksum of the rows that were read.
    """
    spark = frame.sparkSession
    with (
        exact_writing(spark, schema, group_rows=how.group_rows),
        configured(spark, **settings_for(layout)),
        observed(frame) as (watched, checksums),
    ):
        writer = (
            in_files(watched, layout, schema, how, joins)
            .write.mode("append")
            .options(**commit_options(spark, path))
            .options(**how.options)
        )
        if how.max_block_rows:
            writer = writer.option("maxRecordsPerFile", how.max_block_rows)
        writer.parquet(path)
    return checksums[0]


def commit_options(spark: SparkSession, path: str) -> dict[str, str]:
    """Return options for a writer into this folder; in an object store, its tasks move their files, not the driver.

    Files of a task that failed after its first move may stay, so the caller has to check all rows after the write."""
    return {"mapreduce.fileoutputcommitter.algorithm.version": "2"} if Folder(spark, path).is_store else {}


def block_of_file(path: str) -> int:
    """Return the number in a file's name, -1 if the name has none: that of its block, or of its run of blocks."""
    match = re.match(r"part-(\d+)-", path.rpartition("/")[2])
    return int(match[1]) if match else -1
