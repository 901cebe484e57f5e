"""Write one file per block: Spark moves rows to the task of their block, and the task's number is the block's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hedgerow.core.layout import Layout
from hedgerow.core.types import Type
from hedgerow.spark.assign import BLOCK, with_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HUGE = "spark.sql.codegen.hugeMethodLimit"


def write_blocks(
    spark: SparkSession,
    frame: DataFrame,
    layout: Layout,
    schema: Mapping[str, Type],
    path: str,
    max_block_rows: int | None = None,
    sort_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    mode: str = "error",
) -> None:
    """`part-<block>-...` for each block that has rows, a block over `max_block_rows` in several files."""
    from pyspark.sql import functions as f

    before = spark.conf.get(_HUGE, None)
    spark.conf.set(_HUGE, "8000")  # beyond it Spark interprets the CASE of a big tree row by row
    try:
        routed = with_block(frame, layout, schema).repartitionById(layout.blocks, f.col(BLOCK)).drop(BLOCK)
        if sort_by:
            routed = routed.sortWithinPartitions(*sort_by)
        writer = routed.write.mode(mode).options(**(options or {}))
        if max_block_rows:
            writer = writer.option("maxRecordsPerFile", max_block_rows)
        writer.parquet(path)
    finally:
        if before is None:
            spark.conf.unset(_HUGE)
        else:
            spark.conf.set(_HUGE, before)


def block_of_file(name: str) -> int | None:
    """The block in a file's name, if it is a file of ours."""
    found = re.match(r"part-(\d+)-", name)
    return int(found[1]) if found else None
