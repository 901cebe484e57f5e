"""Estimates the seconds of a table's queries, in the table as it is and in a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.row_order import runs_in
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_index, score_layout
from hedgerow.core.learning.seconds import Estimate, Speed, estimate
from hedgerow.core.learning.virtual_blocks import VirtualBlocks
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.reads_now import reads_now
from hedgerow.spark.compute.measure_speed import measured_speed
from hedgerow.spark.storage.source import Source
from hedgerow.spark.write.partition_files import file_numbers, owners

SMALL_TABLE_BYTES = 16 << 20  # Spark reads so few bytes as fast as any part of them
_MAX_ROWS = 200_000


def sampled_score(
    source: Source,
    queries: Sequence[Query],
    layout: Layout,
    sort_by: str | None,
    sample: Sample,
    block_rows: int,
    summed: Sequence[Column] = (),
) -> Score | None:
    """Return the score of a layout of the sample; None if no query filters on its features, as with `random`.

    Args:
        block_rows: the minimum rows of a block, and of a file where partitions divide blocks.
        summed: the columns whose sums the index would hold.
    """
    few, name = sample.part(_MAX_ROWS), source.name
    try:
        if isinstance(layout, OverlapLayout):
            return score_layout(layout, few, queries, name, summed)
        files = files_of_rows(layout, RowCounter(few.rows, 1 / few.fraction), source.partitions, block_rows)
        blocks = VirtualBlocks(few, files, max(layout.blocks, int(files.max(initial=0)) + 1))
        score = score_index(blocks.index, few, queries, name, blocks.chances, summed)
        return with_runs(score, layout, sort_by, few, queries, name, files)
    except LayoutError:
        return None


def files_of_rows(layout: Layout, counter: RowCounter, partitions: Sequence[str], block_rows: int) -> Ints:
    """Return the file of each row in memory, as `apply` writes it: of its block, or else of a part of its partition."""
    rows = counter.rows
    blocks = layout.assign(rows).astype(np.int64)
    ranked = [rows.ranked[column] for column in (Column((name,)) for name in partitions) if column in rows.ranked]
    if not ranked:
        return blocks
    owner = owners([column.places.astype(np.int64) for column in ranked])
    parts, part = np.unique(np.stack([owner, blocks]), axis=1, return_inverse=True)
    part = part.reshape(-1)
    counts = np.round(np.bincount(part[: counter.counted], minlength=parts.shape[1]) * counter.weight)
    return file_numbers(parts[0], parts[1], counts.astype(np.int64), block_rows)[part]


def with_runs(
    score: Score,
    layout: Layout,
    sort_by: str | None,
    sample: Sample,
    queries: Sequence[Query],
    table: str,
    files: Ints | None = None,
) -> Score:
    """Return the score with the bytes that are read of the opened files after Parquet skipped parts of them.

    `files`: the file of each row of the sample, if that is not its block."""
    if isinstance(layout, OverlapLayout):
        return score
    runs = score_index(runs_in(layout, sample, sort_by, files), sample, queries, table, summed=None).queries
    left = [min(q.bytes_read, run.bytes_read) for q, run in zip(score.queries, runs, strict=True)]
    return replace(score, queries=tuple(replace(q, bytes_left=b) for q, b in zip(score.queries, left, strict=True)))


def seconds_of(source: Source, queries: Sequence[Query], score: Score) -> Estimate | None:
    """Return the estimate for a score of these queries; None if they cannot be timed, or the table is small."""
    speed = speed_of(source, queries)
    if speed is None:
        return None
    return estimate(score, [q.weight for q in queries], speed, reads_now(source, queries), source.size)


def speed_of(source: Source, queries: Sequence[Query]) -> Speed | None:
    """Return how fast queries read the table; None if they cannot be timed, or the table is small."""
    return None if is_small(source) else measured_speed(source, queries)


def is_small(source: Source) -> bool:
    return source.size < SMALL_TABLE_BYTES
