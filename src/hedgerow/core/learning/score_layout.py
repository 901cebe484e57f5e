"""Estimate the shares of rows, blocks and bytes that each query would read under a layout, and its selectivity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hedgerow.core.arrays import Floats
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import VirtualBlocks
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import QueryScore, Score


def score_layout(layout: Layout, sample: Sample, queries: Sequence[Query], table: str) -> Score:
    """Score a layout on virtual blocks made of the sample's rows; nothing is written."""
    if isinstance(layout, OverlapLayout):
        return score_index(layout.index(sample.rows), sample, queries, table)
    blocks = VirtualBlocks.of(layout, sample)
    return score_index(blocks.index, sample, queries, table, blocks.chances)


def score_index(
    index: BlockIndex,
    sample: Sample,
    queries: Sequence[Query],
    table: str,
    chances: Callable[[Predicate], Floats] | None = None,
) -> Score:
    """Score the blocks that the queries open; the sample provides column widths and the share of rows that match.

    `chances` returns the probability that a query opens each block; by default the index decides.
    """
    rows = index.blocks.rows
    scores = []
    for query in queries:
        p = query.predicate(table)
        opened = index.to_open(p).astype(float) if chances is None else chances(p)
        read = float(opened @ rows / max(1, rows[index.home_blocks].sum()))
        width = _width(sample, query.columns(table), p)
        blocks = float(opened.sum() / max(1, (rows > 0).sum()))
        scores.append(QueryScore(query.id, read, blocks, read * width, sample.selectivity(p)))
    return Score.mean(scores, [q.weight for q in queries], int((rows > 0).sum()))


def _width(sample: Sample, reads: tuple[str, ...] | None, p: Predicate) -> float:
    """Return the share of the table's bytes in the columns that the query reads."""
    total, names = sum(sample.width.values()), read_columns(reads, p)
    if names is None or not total:
        return 1.0
    lower = {name.lower() for name in names}
    return sum(w for name, w in sample.width.items() if name.lower() in lower) / total
