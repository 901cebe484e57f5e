"""Write one file per block: Spark moves rows to the task of their block, and the task's number is the block's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.types import FLOAT, Type
from hedgerow.spark.compute.assign_blocks import BLOCK, order_inside, settings_for, with_block
from hedgerow.spark.compute.checksum import Checksum, observed
from hedgerow.spark.judged import WRITING
from hedgerow.spark.start.session import configured, having

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    spark = frame.sparkSession
    with exact_writing(spark, schema), configured(spark, **settings_for(layout)), observed(frame) as (noted, found):
        routed = with_block(noted, layout, schema).repartitionById(layout.blocks, f.col(BLOCK)).drop(BLOCK)
        inside = order_inside(layout, sort_by, by_key)
        if inside:
            routed = routed.sortWithinPartitions(*inside)
        writer = routed.write.mode("append").options(**(options or {}))
        if max_block_rows:
            writer = writer.option("maxRecordsPerFile", max_block_rows)
        writer.parquet(path)
    return found[0]


@contextmanager
def exact_writing(
    spark: SparkSession, schema: Mapping[str, Type], physical: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Files get the very values that are written, whatever the session's settings for writers say.

    Columns that may hold -0.0 are written without a dictionary. There Parquet takes it for another value than 0.0: a
    file whose dictionary has but one of them would be skipped by who asks for the other.

    `physical`: what top-level columns are called in the files, if not as in the schema.
    """
    paths = [path_of(name) for name, type_ in schema.items() if type_.kind == FLOAT]
    names = physical or {}
    inside = [(names.get(top, top), *rest) for top, *rest in paths]
    plain = not any("." in part for path in inside for part in path) and not any(names and len(p) > 1 for p in inside)
    keys = ["#" + ".".join(path) for path in inside] if plain else [""]  # a path that cannot be told apart: no column
    with having(spark, {**WRITING, **{f"parquet.enable.dictionary{key}": "false" for key in keys}}):
        yield


def block_of_file(name: str) -> int:
    """The block in a file's name, -1 if it is not a file of ours."""
    found = re.match(r"part-(\d+)-", name)
    return int(found[1]) if found else -1
