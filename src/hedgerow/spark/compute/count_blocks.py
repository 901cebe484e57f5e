"""Counts the rows of a layout's blocks over a table, or a sample of it, for learners that use counts to fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.layouts.base import Layout
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.collect_stats import collect_blocks, count_combinations
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MAX_COUNTED_ROWS = 1_000_000
_BYTES_OF_A_JOINER, _MAX_JOINERS = 4 << 30, 8  # a table of a few gigabytes has few tasks


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
        joiners = min(_MAX_JOINERS, int(self.source.size) // _BYTES_OF_A_JOINER)
        wanted, schema = list(items.values()), self.source.schema
        stats = collect_blocks(self._counted, layout, wanted, schema, self.joins, joiners)
        stats = replace(stats, rows=self._in_table(stats.rows))
        self.seconds += perf_counter() - started
        return stats

    def count_together(self, layouts: Sequence[Layout]) -> tuple[Ints, Ints]:
        started = perf_counter()
        combinations, rows = count_combinations(self._counted, layouts, self.source.schema, self.joins)
        self.seconds += perf_counter() - started
        return combinations, np.maximum(1, self._in_table(rows))

    @property
    def _share(self) -> float:
        return 1.0 if self.most is None else min(1.0, self.most / max(1, self.source.rows))

    @property
    def _counted(self) -> DataFrame:
        """The rows that are counted; they are other rows than those of the learner's sample."""
        frame, share = self.source.frame, self._share
        return frame.sample(share, self.seed + 1) if share < 1 else frame

    def _in_table(self, counts: Ints) -> Ints:
        """Return the numbers of rows in the table for numbers of counted rows."""
        if self._share == 1:
            return counts
        scaled: Ints = np.round(counts * (self.source.rows / max(1, int(counts.sum())))).astype(np.int64)
        return scaled
