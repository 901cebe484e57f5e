"""Learns a layout of many blocks in two levels: regions first, then each of them by a task.

    sample of the table, at most a million rows  ->  a tree of regions
    a larger sample, which stays in the tasks    ->  a tree in each region

A million rows are too few for 160,000 blocks. More rows would fill the driver, and one process would learn for hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hedgerow.core.errors import HedgerowError
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.predicates.nodes import Feature, atoms_of
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.spark.compute.assign_blocks import BLOCK, settings_for, with_block
from hedgerow.spark.compute.evaluate import computed, rows_of, spark_columns
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.compute.sample import MAX_SAMPLE_ROWS, UNCOUNTED
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import configured, first_line, spark_errors
from hedgerow.spark.start.ship import ship_modules
from hedgerow.spark.storage.source import Source

_MOST, _BLOCKS_EACH = 1000, 100  # regions, and the blocks of each
_LEAST_SAMPLED = 50  # rows of a block; with fewer, regions are learned first


def usual_regions(blocks: int) -> int:
    """Return the number of regions for a table of so many blocks; 1 if the largest sample has enough rows for all.

    >>> usual_regions(456), usual_regions(30_000), usual_regions(160_000)
    (1, 300, 1000)
    """
    return 1 if _LEAST_SAMPLED * blocks <= MAX_SAMPLE_ROWS else min(_MOST, blocks // _BLOCKS_EACH)


def learn_in_regions(
    source: Source, problem: Problem, items: Sequence[Feature], joins: Joins, model: Learner, regions: int
) -> TreeLayout:
    """Return a tree of at most so many regions, with the tree that a task learns below each of them.

    Args:
        items: what was drawn of each row of the problem's sample.
        model: a learner of trees.
    """
    spark = source.frame.sparkSession
    top = QdTree(cells=1).fit(problem.with_block_rows(-(-source.rows // regions)))
    assert isinstance(top, TreeLayout)
    share = min(1.0, UNCOUNTED * problem.amounts.rows / problem.block_rows)
    names, whole = computed(items), problem.without_rows()
    atoms = {atom for p in whole.predicates for atom in atoms_of(p)}

    def layout_of(region: tuple[pa.Scalar, ...], drawn: pa.Table) -> pa.Table:
        rows = with_searches(rows_of(drawn, names), atoms)
        part = whole.of_part(replace(whole.sample, rows=rows, table_rows=round(len(rows) / share)))
        layout = layout_to_json(model.fit(part))
        return pa.table({"region": pa.array([region[0].as_py()], pa.int32()), "layout": [layout]})

    ship_modules(spark)
    with step(spark, f"learning {top.blocks:,} regions"), configured(spark, **settings_for(top, items)):
        drawn = source.frame.sample(share, problem.seed + 2) if share < 1 else source.frame
        routed = with_block(drawn, top, source.schema, joins)
        sampled = joins.widened(routed, items).select(BLOCK, *spark_columns(names))
        # A number of partitions, so that Spark does not join small ones: they are small, but take long.
        by_region = sampled.repartition(top.blocks, BLOCK).groupBy(BLOCK)
        try:
            rows = by_region.applyInArrow(layout_of, "region int, layout string").collect()
        except spark_errors() as error:
            raise HedgerowError(f"the regions cannot be learned: {first_line(error)}") from error
    below = [TreeLayout((), ())] * top.blocks
    for row in rows:
        tree = layout_from_json(row.layout)
        assert isinstance(tree, TreeLayout)
        below[row.region] = tree
    return top.with_trees_below(below)
