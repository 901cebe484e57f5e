"""Writes copies of rows that belong to several blocks, into files of their own that plain readers do not see.

    part-00001-....parquet                      block 1: each row of the table is in one such file
    _hedgerow/copies/part-00001-....parquet     block 1's copies of other blocks' cells, numbered in `_hedgerow_copy`

Copies are made from the written files, because reading the source a second time may give other rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.index.block_index import BlockIndex, CellIndex
from hedgerow.core.index.file_choice import CellParts, WholePlaces
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.combine_stats import concat, regroup
from hedgerow.spark.compute.assign_blocks import BLOCK, settings_for, with_block
from hedgerow.spark.compute.collect_stats import collect_by, file_name, usable_items
from hedgerow.spark.compute.evaluate import without_user_functions
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.session import configured
from hedgerow.spark.write.blocks import block_of_file, commit_options
from hedgerow.spark.write.by_number import divided
from hedgerow.spark.write.exact_writing import exact_writing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COPIES, COPY = "_hedgerow/copies", "_hedgerow_copy"
_FILE = helper_name("file")


def check_can_overlap(layout: OverlapLayout, schema: Mapping[str, Type]) -> None:
    """Raise LayoutError if a cut may put a row into another cell later, or if a column is called `COPY`."""
    if COPY in map(str.lower, schema):
        raise LayoutError(f"a table with a column called {COPY} cannot keep rows in several blocks: rename the column")
    if len(without_user_functions(layout.features)) < len(layout.features):
        raise LayoutError("rows are kept in several blocks only by conditions without functions of your own")


def copied(frame: DataFrame, layout: OverlapLayout, schema: Mapping[str, Type]) -> DataFrame:
    """Repeat each row once for every copy of its cell, with the number of block and cell in the column `COPY`."""
    from pyspark.sql import functions as f

    values = ", ".join(f"({cell}, {layout.code(block, cell)}L)" for cell, block in layout.pairs)
    pairs = frame.sparkSession.sql(f"SELECT * FROM VALUES {values} AS pairs({BLOCK}, {COPY})")
    return with_block(frame, layout.tree, schema).join(f.broadcast(pairs), BLOCK).drop(BLOCK)


def write_copies(
    frame: DataFrame,
    layout: OverlapLayout,
    schema: Mapping[str, Type],
    path: str,
    sort_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> None:
    """Write the copies of the rows in `frame`, which is read from the written files, into the folder `path`."""
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    with exact_writing(spark, schema), configured(spark, **settings_for(layout.tree)):
        block = f.expr(f"CAST({COPY} DIV {len(layout.home)} AS INT)")
        routed = divided(copied(frame, layout, schema), layout.blocks, block)
        if sort_by:
            routed = routed.sortWithinPartitions(*sort_by)
        routed.write.mode("append").options(**commit_options(spark, path)).options(**(options or {})).parquet(path)


def collect_parts(
    own: DataFrame,
    copies: DataFrame | None,
    layout: OverlapLayout,
    wanted: Sequence[Feature],
    schema: Mapping[str, Type],
    files: Sequence[str],
) -> BlockIndex:
    """Return the index of the files in two views: one entry for each file, and one for each cell in a file.

    `copies`: rows with the column `COPY`, the number of block and cell."""
    from pyspark.sql import functions as f

    def key(name: Column, cell: str) -> Column:
        return f.concat(name, f.lit("/"), f.expr(cell))

    # The file's name becomes a column first, because it is not available above other columns.
    named = with_block(own.withColumn(_FILE, file_name(own)), layout.tree, schema)
    items = usable_items(own, wanted, schema)
    collected = [collect_by(named, key(f.col(_FILE), BLOCK), items)]
    if copies is not None:
        cell = f"CAST({COPY} % {len(layout.home)} AS INT)"
        collected.append(collect_by(copies, key(file_name(copies), cell), items))
    stats = concat([s for _, s in collected])
    file_numbers = {name.rsplit("/", 1)[-1]: i for i, name in enumerate(files)}
    keys = [key.split("/") for names, _ in collected for key in names]
    cells = np.array([int(cell) for _, cell in keys], np.int64)
    blocks = np.array([block_of_file(name) for name, _ in keys], np.int64)
    file = np.array([file_numbers[name] for name, _ in keys], np.int64)
    places = np.where(np.arange(len(keys)) < len(collected[0][0]), blocks, ~blocks)
    parts = CellParts(cells, places, file)
    _check_places(layout, parts, parts.whole_places(stats.rows))
    return BlockIndex(regroup(stats, file, len(files)), CellIndex(stats, parts))


def _check_places(layout: OverlapLayout, parts: CellParts, homes: WholePlaces) -> None:
    """Raise HedgerowError unless every row is in the block of the layout, and every copy has all rows of its cell."""
    for cell, place in zip(parts.cell.tolist(), parts.place.tolist(), strict=True):
        if place >= 0 and layout.home[cell] != place:
            raise HedgerowError("a row went to another block than it belongs to: a condition of the layout changes")
    for cell, blocks in homes.items():
        if blocks != {layout.home[cell], *(~b for b in layout.copies[cell])}:
            raise HedgerowError("a copy does not have the rows that it is a copy of: a condition of the layout changes")
