"""Estimate the shares of rows, blocks and bytes that each query would read under a layout, and its selectivity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Floats
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.joined_index import JoinedIndex
from hedgerow.core.index.sums import with_assumed_sums
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import VirtualBlocks
from hedgerow.core.predicates.nodes import Column, Predicate
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Means, QueryScore, Score
from hedgerow.core.workload.wanted_files import files_for, means_of
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Top, WantedRows


def score_layout(
    layout: Layout, sample: Sample, queries: Sequence[Query], table: str, summed: Sequence[Column] = ()
) -> Score:
    """Score a layout on virtual blocks made of the sample's rows; nothing is written.

    `summed`: the columns whose sums the index would hold."""
    if isinstance(layout, OverlapLayout):
        return score_index(layout.index(sample.rows), sample, queries, table, summed=summed)
    blocks = VirtualBlocks.of(layout, sample)
    return score_index(blocks.index, sample, queries, table, blocks.chances, summed)


def score_index(
    index: BlockIndex,
    sample: Sample,
    queries: Sequence[Query],
    table: str,
    chances: Callable[[Predicate], Floats] | None = None,
    summed: Sequence[Column] | None = (),
) -> Score:
    """Score the blocks that the queries open; the sample provides column widths and the share of rows that they need.

    Args:
        chances: returns the probability that the condition of a query opens each block; by default the index decides.
        summed: as for `score_layout`; None: only WHERE decides, as it does for the parts of a file, and what queries
            need is not asked.
    """
    rows, home = index.blocks.rows, index.home_blocks
    counted = np.round(rows * (sample.table_rows / max(1, rows[home].sum()))).astype(np.int64)
    stats = with_assumed_sums(replace(index.blocks, rows=counted), summed or (), sample.schema)
    joined = JoinedIndex([BlockIndex(stats, index.cells)])
    scores = []
    for query in queries:
        p = query.written(table) if summed is None else query.predicate(table)
        means: Means = "where"
        opened = index.to_open(p).astype(float) if chances is None else chances(p)
        wanted = None if summed is None else query.wanted(table)
        needed = None if wanted is None else files_for(joined, wanted, p, counted, sample.schema)
        if wanted is not None and needed is not None and not needed.all():
            opened, means = np.minimum(opened, needed), means_of(wanted)
        elif index.filters_skip(p, opened > 0):
            means = "look-up"
        read = float(opened @ rows / max(1, rows[home].sum()))
        width = _width(sample, query.columns(table), p)
        blocks = float(opened.sum() / max(1, (rows > 0).sum()))
        matching = None if summed is None else sample.selectivity(p)
        needed_share, until = _needed_share(sample, matching, wanted), _until_limit(sample, matching, wanted)
        scores.append(QueryScore(query.id, read, blocks, read * width, needed_share, means=means, until_limit=until))
    return Score.mean(scores, [q.weight for q in queries], int((rows > 0).sum()))


def _needed_share(sample: Sample, matching: float | None, wanted: WantedRows | None) -> float | None:
    """Return the share of the table's rows that a query has to read in any layout; None if only Spark can tell.

    `matching`: the share of the rows that its condition lets pass."""
    match wanted:
        case Top() | AnyRows() if matching is not None:
            return min(matching, wanted.rows / max(1, sample.table_rows))
        case Aggregates():
            return 0.0
    return matching


def _until_limit(sample: Sample, matching: float | None, wanted: WantedRows | None) -> float:
    """Return the share of the opened rows that is read before a LIMIT without an order has its rows."""
    if not isinstance(wanted, AnyRows) or not matching:
        return 1.0
    return min(1.0, wanted.rows / (matching * max(1, sample.table_rows)))


def _width(sample: Sample, reads: tuple[str, ...] | None, p: Predicate) -> float:
    """Return the share of the table's bytes in the columns that the query reads."""
    total, names = sum(sample.width.values()), read_columns(reads, p)
    if names is None or not total:
        return 1.0
    lower = {name.lower() for name in names}
    return sum(w for name, w in sample.width.items() if name.lower() in lower) / total
