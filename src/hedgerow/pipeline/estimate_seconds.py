"""Estimates what a table's queries take now, and what they would take in a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.row_order import runs_in
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_index, score_layout
from hedgerow.core.learning.seconds import Estimate, Speed, estimate
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Score
from hedgerow.spark.compute.measure_speed import measured_speed
from hedgerow.spark.storage.source import Source

SMALL_TABLE_BYTES = 16 << 20  # Spark reads so few bytes as fast as any part of them
_MAX_ROWS = 200_000


def estimated_seconds(
    source: Source,
    queries: Sequence[Query],
    layout: Layout,
    sort_by: str | None,
    sample: Sample,
    speed: Speed | None,
) -> tuple[Estimate | None, str | None]:
    """The estimate, and a sentence if little is to be gained; the estimate is None if the speed is not known."""
    if speed is None:
        less = f"{source.name} has less than {SMALL_TABLE_BYTES >> 20} MB, which Spark reads in no time"
        return None, f"little is to be gained: {less}" if is_small(source) else None
    found = seconds_in(source, queries, layout, sort_by, sample, speed)
    return found, f"little is to be gained: {found}" if found and not found.pays else None


def seconds_in(
    source: Source, queries: Sequence[Query], layout: Layout, sort_by: str | None, sample: Sample, speed: Speed
) -> Estimate | None:
    """The estimate for a layout of the sample; None if it divides rows by what no query asks for, as `random` does."""
    few = sample.part(_MAX_ROWS)
    try:
        scored = with_runs(score_layout(layout, few, queries, source.name), layout, sort_by, few, queries, source.name)
    except LayoutError:
        return None
    return seconds_of(source, queries, scored, speed)


def with_runs(
    scored: Score, layout: Layout, sort_by: str | None, sample: Sample, queries: Sequence[Query], table: str
) -> Score:
    """The same score, telling what is left of the opened files when Parquet has skipped what it can."""
    if isinstance(layout, OverlapLayout):
        return scored
    runs = score_index(runs_in(layout, sample, sort_by), sample, queries, table).queries
    left = [min(q.bytes_read, run.bytes_read) for q, run in zip(scored.queries, runs, strict=True)]
    return replace(scored, queries=tuple(replace(q, bytes_left=b) for q, b in zip(scored.queries, left, strict=True)))


def seconds_of(source: Source, queries: Sequence[Query], scored: Score, speed: Speed | None = None) -> Estimate | None:
    """The estimate that belongs to a score of these queries; None if they cannot be timed, or the table is small."""
    speed = speed or speed_of(source, queries)
    if speed is None:
        return None
    return estimate(scored, [q.weight for q in queries], speed, len(source.files), source.size)


def speed_of(source: Source, queries: Sequence[Query]) -> Speed | None:
    """How fast queries read the table; None if they cannot be timed, or the table is small."""
    return None if is_small(source) else measured_speed(source, queries)


def is_small(source: Source) -> bool:
    return source.size < SMALL_TABLE_BYTES
