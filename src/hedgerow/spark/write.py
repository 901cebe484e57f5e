"""Write one file per block: Spark moves rows to the task of their block, and the task's number is the block's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hedgerow.core.layout import Layout
from hedgerow.core.types import Type
from hedgerow.spark.assign import BLOCK, order_inside, settings_for, with_block
from hedgerow.spark.checksum import Checksum, observed
from hedgerow.spark.session import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_blocks(
    frame: DataFrame,
    layout: Layout,
    schema: Mapping[str, Type],
    path: str,
    max_block_rows: int | None = None,
    sort_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    by_key: bool = False,
) -> Checksum:
    """`part-<block>-...` for each block that has rows, a block over `max_block_rows` in several; what went in."""
    from pyspark.sql import functions as f

    with configured(frame.sparkSession, **settings_for(layout)), observed(frame) as (noted, found):
        routed = with_block(noted, layout, schema).repartitionById(layout.blocks, f.col(BLOCK)).drop(BLOCK)
        inside = order_inside(layout, sort_by, by_key)
        if inside:
            routed = routed.sortWithinPartitions(*inside)
        writer = routed.write.mode("append").options(**(options or {}))
        if max_block_rows:
            writer = writer.option("maxRecordsPerFile", max_block_rows)
        writer.parquet(path)
    return found[0]


def block_of_file(name: str) -> int:
    """The block in a file's name, -1 if it is not a file of ours."""
    found = re.match(r"part-(\d+)-", name)
    return int(found[1]) if found else -1
