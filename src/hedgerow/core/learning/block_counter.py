"""Count the rows of a layout's blocks, and collect their statistics, before any file is written.

A learner may need this while it fits, for a tree of many small cells. `RowCounter` counts rows in memory;
`spark/compute/count_blocks` counts the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.word_search import with_searches
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.row_batch import Rows


class BlockCounter(Protocol):
    """Pure functions from layouts to counts of a table's rows, so that `fit` stays a pure function too."""

    def count(self, layout: Layout) -> Stats:
        """Return the statistics of each block, with rows counted as rows of the table."""

    def count_together(self, layouts: Sequence[Layout]) -> tuple[Ints, Ints]:
        """Return the combinations of blocks, one of each layout, that rows have, and the number of rows of each.

        Combinations are columns of an array (layouts, combinations), in lexicographic order.
        """


@dataclass(frozen=True)
class RowCounter:
    """A counter of rows in memory; each of the first `counted` rows stands for `weight` rows of the table.

    The rows after these do not count, but they are in the table, so the statistics include them.
    """

    rows: Rows
    weight: float = 1.0
    counted: int | None = None

    def count(self, layout: Layout) -> Stats:
        searched = replace(self, rows=with_searches(self.rows, layout.features))
        return searched.stats(layout.assign(searched.rows).astype(np.int64), layout.blocks)

    def count_together(self, layouts: Sequence[Layout]) -> tuple[Ints, Ints]:
        rows = with_searches(self.rows, [feature for layout in layouts for feature in layout.features])
        blocks = np.array([layout.assign(rows) for layout in layouts], np.int64)
        combinations, of = np.unique(blocks, axis=1, return_inverse=True)
        counts = np.bincount(of.reshape(-1)[: self.counted], minlength=combinations.shape[1])
        # A combination of rows that do not count is in the table too.
        return combinations, np.maximum(1, np.round(counts * self.weight)).astype(np.int64)

    def stats(self, entry: Ints, entries: int) -> Stats:
        """Return the statistics of entries, where row i belongs to entry `entry[i]`."""
        counts = np.bincount(entry[: self.counted], minlength=entries)
        return replace(self.rows.stats(entry, entries), rows=np.round(counts * self.weight).astype(np.int64))
