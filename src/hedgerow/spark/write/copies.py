"""Rows that lie in several blocks: the copies, in files of their own that plain readers do not see.

    part-00001-....parquet                      block 1: each row of the table lies in one such file
    _hedgerow/copies/part-00001-....parquet     what block 1 has of other blocks' cells; `_hedgerow_copy` says of which

Copies are made of the rows that were written: a source may say something else when it is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.index.file_choice import Homes, Parts
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import concat, regroup
from hedgerow.spark.compute.assign_blocks import BLOCK, settings_for, with_block
from hedgerow.spark.compute.collect_stats import collect_by, file_name
from hedgerow.spark.compute.evaluate import Item, lasting
from hedgerow.spark.helper_columns import helper_name
from hedgerow.spark.start.session import configured
from hedgerow.spark.write.blocks import block_of_file, exact_writing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COPIES, COPY = "_hedgerow/copies", "_hedgerow_copy"
_FILE = helper_name("file")


def check_cuts(layout: OverlapLayout, schema: Mapping[str, Type]) -> None:
    """A row has to be in the same cell whenever it is asked, and no column may have the name of the copies' own."""
    if COPY in map(str.lower, schema):
        raise LayoutError(f"a table with a column called {COPY} cannot keep rows in several blocks: rename the column")
    if len(lasting(layout.features)) < len(layout.features):
        raise LayoutError("rows are kept in several blocks only by conditions without functions of your own")


def copied(frame: DataFrame, layout: OverlapLayout, schema: Mapping[str, Type]) -> DataFrame:
    """Each row as often as its cell is copied, with the number of block and cell."""
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
    """`frame` is what was written; `path` the folder of copies."""
    from pyspark.sql import functions as f

    spark = frame.sparkSession
    with exact_writing(spark, schema), configured(spark, **settings_for(layout.tree)):
        block = f.expr(f"CAST({COPY} DIV {len(layout.home)} AS INT)")
        routed = copied(frame, layout, schema).repartitionById(layout.blocks, block)
        if sort_by:
            routed = routed.sortWithinPartitions(*sort_by)
        routed.write.mode("append").options(**(options or {})).parquet(path)


def collect_parts(
    own: DataFrame,
    copies: DataFrame | None,
    layout: OverlapLayout,
    wanted: Sequence[Item],
    schema: Mapping[str, Type],
    files: Sequence[str],
) -> BlockIndex:
    """The index over the files, first the files themselves, then which cells lie in them; `copies` has the numbers."""
    from pyspark.sql import functions as f

    def key(name: Column, cell: str) -> Column:
        return f.concat(name, f.lit("/"), f.expr(cell))

    # The name becomes a column before others do, for later it could not be asked for.
    named = with_block(own.withColumn(_FILE, file_name(own)), layout.tree, schema)
    found = [collect_by(named, key(f.col(_FILE), BLOCK), wanted, schema)]
    if copies is not None:
        cell = f"CAST({COPY} % {len(layout.home)} AS INT)"
        found.append(collect_by(copies, key(file_name(copies), cell), wanted, schema))
    stats = concat([s for _, s in found])
    place_of = {name.rsplit("/", 1)[-1]: i for i, name in enumerate(files)}
    keys = [key.split("/") for names, _ in found for key in names]
    cells = np.array([int(cell) for _, cell in keys], np.int64)
    blocks = np.array([block_of_file(name) for name, _ in keys], np.int64)
    file = np.array([place_of[name] for name, _ in keys], np.int64)
    places = np.where(np.arange(len(keys)) < len(found[0][0]), blocks, ~blocks)
    parts = Parts(cells, places, file)
    _check(layout, parts, parts.homes(stats.rows))
    return BlockIndex((View(regroup(stats, file, len(files))), View(stats, None, parts)))


def _check(layout: OverlapLayout, parts: Parts, homes: Homes) -> None:
    """Every row is where the layout says, and every copy has all rows of its cell."""
    for cell, place in zip(parts.cell.tolist(), parts.place.tolist(), strict=True):
        if place >= 0 and layout.home[cell] != place:
            raise HedgerowError("a row went to another block than it belongs to: a condition of the layout changes")
    for cell, found in homes.items():
        if found != {layout.home[cell], *(~b for b in layout.copies[cell])}:
            raise HedgerowError("a copy does not have the rows that it is a copy of: a condition of the layout changes")
