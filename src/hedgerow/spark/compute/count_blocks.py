"""Counts the blocks of a layout over all rows of a table, for learners that ask while they fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

from hedgerow.core.layouts.base import Layout, sql_of
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.collect_stats import collect_blocks
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.source import Source


@dataclass
class TableCounter:
    """A `BlockCounter`: one pass of Spark over the table for each layout; `seconds` is the time of these passes."""

    source: Source
    items: Iterable[Item]
    seconds: float = 0.0

    def count(self, layout: Layout) -> Stats:
        started = perf_counter()
        items = {sql_of(item): item for item in (*self.items, *layout.features)}
        stats = collect_blocks(self.source.frame, layout, list(items.values()), self.source.schema)
        self.seconds += perf_counter() - started
        return stats
