"""PresentLayout: the present layout of a table, judged on the sample as new layouts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Score
from hedgerow.pipeline.estimate_seconds import sampled_score
from hedgerow.spark.storage.source import Source


@dataclass(frozen=True)
class PresentLayout:
    """The layout that all files of a table have; `sort_by`: the column that rows of a file are sorted by."""

    layout: Layout
    sort_by: str | None

    def lower(self, now: Score, source: Source, queries: Sequence[Query], sample: Sample, block_rows: int) -> Score:
        """Return the score of a table as it is, with fewer rows where Parquet skips parts of the opened files.

        The index knows nothing of such parts, but the score of a learned layout does. Without this, a layout that was
        just written would seem to gain by being written again."""
        features = [feature for feature in self.layout.features if isinstance(feature, Predicate)]
        score = sampled_score(source, queries, self.layout, self.sort_by, sample.noting(features), block_rows)
        if score is None:  # the sample lacks what the layout divides rows by
            return now
        queries_now = []
        for query, laid in zip(now.queries, score.queries, strict=True):
            share_left = laid.bytes_after_skipping / laid.bytes_read if laid.bytes_read else 1.0
            rows = laid.rows_read * share_left
            queries_now.append(replace(query, rows_read=min(query.rows_read, rows)))
        return replace(now, queries=tuple(queries_now))
