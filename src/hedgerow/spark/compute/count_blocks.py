"""Counts the rows of a layout's blocks over a table, or a sample of it, for learners that use counts to fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.collect_stats import collect_blocks
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.storage.source import Source

MAX_COUNTED_ROWS = 1_000_000


@dataclass
class TableCounter:
    """A `BlockCounter` that makes one pass of Spark for each layout, over about `most` rows (None: all rows).

    `seconds`: the time of the passes so far.
    """

    source: Source
    items: Iterable[Feature]
    most: int | None = None
    seed: int = 0
    seconds: float = 0.0
    joins: Joins = NO_JOINS

    def count(self, layout: Layout) -> Stats:
        started = perf_counter()
        items = {feature_text(item): item for item in (*self.items, *layout.features)}
        frame, rows = self.source.frame, self.source.rows
        share = 1.0 if self.most is None else min(1.0, self.most / max(1, rows))
        if share < 1:
            frame = frame.sample(share, self.seed + 1)  # other rows than the learner's sample
        stats = collect_blocks(frame, layout, list(items.values()), self.source.schema, self.joins)
        if share < 1:
            counted = max(1, int(stats.rows.sum()))
            stats = replace(stats, rows=np.round(stats.rows * (rows / counted)).astype(np.int64))
        self.seconds += perf_counter() - started
        return stats
