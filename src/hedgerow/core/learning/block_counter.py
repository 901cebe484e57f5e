"""Counts the rows and the statistics of a layout's blocks before any file is written.

A learner may ask for this while it fits, for a tree of many small cells. `RowCounter` counts rows in memory;
`spark/compute/count_blocks` counts the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.core.layouts.base import Layout
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.row_batch import Rows


class BlockCounter(Protocol):
    """The same layout gives the same counts, so `fit` stays a pure function of its problem."""

    def count(self, layout: Layout) -> Stats:
        """The statistics of each block, with rows counted as rows of the table."""


@dataclass(frozen=True)
class RowCounter:
    """Counts rows in memory; each of them stands for `weight` rows of the table."""

    rows: Rows
    weight: float = 1.0

    def count(self, layout: Layout) -> Stats:
        stats = self.rows.stats(layout.assign(self.rows), layout.blocks)
        return replace(stats, rows=np.round(stats.rows * self.weight).astype(np.int64))
