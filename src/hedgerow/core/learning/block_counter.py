"""Counts the rows and the statistics of a layout's blocks before any file is written.

A learner may ask for this while it fits, for a tree of many small cells. `RowCounter` counts rows in memory;
`spark/compute/count_blocks` counts the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.row_batch import Rows


class BlockCounter(Protocol):
    """The same layout gives the same counts, so `fit` stays a pure function of its problem."""

    def count(self, layout: Layout) -> Stats:
        """The statistics of each block, with rows counted as rows of the table."""


@dataclass(frozen=True)
class RowCounter:
    """Counts rows in memory; each of the first `counted` stands for `weight` rows of the table.

    Rows after those are known to be in the table too, and statistics describe them.
    """

    rows: Rows
    weight: float = 1.0
    counted: int | None = None

    def count(self, layout: Layout) -> Stats:
        rows = with_searches(self.rows, layout.features)
        blocks = layout.assign(rows)
        counts = np.bincount(blocks[: self.counted], minlength=layout.blocks)
        return replace(rows.stats(blocks, layout.blocks), rows=np.round(counts * self.weight).astype(np.int64))
