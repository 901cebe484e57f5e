"""Blocks made of a sample's rows, and which of them a query would open if they held the whole table's.

An index notes the outcomes of conditions such as `part = 4711`, which bounds cannot answer. Most of its few rows are
missing in a sample of 1 %, and a block without any would seem to be skipped:

    block               1     2     3     4     5
    rows in the table   3     4     0     1     2
    in the sample       0     1     0     0     0

The table has more such rows than the sample shows; they are expected in any block that bounds do not exclude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Floats, Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, Compare, In, Predicate, Term
from hedgerow.core.pruning.block_stats import T_BIT


def virtual_index(layout: Layout, sample: Sample) -> BlockIndex:
    """Return the index of the layout's blocks if the sample were the whole table."""
    if isinstance(layout, OverlapLayout):
        return layout.index(sample.rows)
    return VirtualBlocks.of(layout, sample).index


def index_of_assignment(blocks: np.ndarray, n: int, sample: Sample) -> BlockIndex:
    """Return the index of `n` blocks if the sample were the whole table and row i lay in block `blocks[i]`."""
    return BlockIndex(sample.rows.stats(blocks, n))


@dataclass(frozen=True)
class VirtualBlocks:
    """A layout's blocks, without copies of rows. `block`: where each row of the sample lies; `blocks`: how many there
    are."""

    sample: Sample
    block: Ints
    blocks: int

    @staticmethod
    def of(layout: Layout, sample: Sample) -> VirtualBlocks:
        return VirtualBlocks(sample, layout.assign(sample.rows).astype(np.int64), layout.blocks)

    @cached_property
    def index(self) -> BlockIndex:
        return index_of_assignment(self.block, self.blocks, self.sample)

    @cached_property
    def _bounds(self) -> BlockIndex:
        """What the blocks' values tell, without any condition that is noted."""
        return index_of_assignment(self.block, self.blocks, replace(self.sample, rows=self.sample.rows.with_truths({})))

    @cached_property
    def _rows_of_a_value(self) -> dict[Term, float]:
        return {}

    def chances(self, p: Predicate) -> Floats:
        """How likely a query for `p` opens each block."""
        opened = self.index.to_open(p)
        chances = opened.astype(float)
        if self.sample.fraction == 1:
            return chances
        others = self._bounds.to_open(p) & ~opened
        if not others.any():
            return chances
        try:
            found = np.bincount(self.block[self.sample.rows.evaluate(p) == T_BIT], minlength=self.blocks)
        except LayoutError:  # only Spark could tell
            return chances
        chances[others] = 1 - np.exp(-self._unseen(p, found) / others.sum())
        return chances

    def _unseen(self, p: Predicate, found: Ints) -> float:
        """Return the expected rows of a condition in blocks where the sample has none of them.

        `found`: the sample's rows of the condition in each block. Of the rows that come next, those in new blocks are
        about as many as those seen in a block by themselves (the estimate of Good and Turing)."""
        seen, usual = float(found.sum()), self._usual(p)
        alone = float((found == 1).sum()) / seen if seen else 1.0
        if usual is None:
            return alone * seen / self.sample.fraction
        # The mean of what the sample shows and of what is usual, as if rows of a value were exponentially distributed.
        return alone * (seen + 1) / (self.sample.fraction + 1 / usual)

    def _usual(self, p: Predicate) -> float | None:
        """How many rows of the table have the value that a condition asks for, in the mean over all values."""
        match p:
            case Compare(term, "=", _):
                return self._of_a_value(term)
            case In(term, literals):
                rows = self._of_a_value(term)
                return None if rows is None else len(literals) * rows
            case And(kids):
                return min((rows for rows in map(self._usual, kids) if rows is not None), default=None)
        return None

    def _of_a_value(self, term: Term) -> float | None:
        if term not in self._rows_of_a_value and self.sample.rows.distinct(term):
            self._rows_of_a_value[term] = self.sample.table_rows / distinct_in_table(self.sample, term)
        return self._rows_of_a_value.get(term)


def distinct_in_table(sample: Sample, term: Term) -> float:
    """Return the number of values that a table has, estimated from how many came once and twice in the sample (Chao)."""
    places = sample.rows.ranks(term).places
    times = np.bincount(np.bincount(places[places >= 0]), minlength=3)
    once, twice = float(times[1]), float(times[2])
    unseen = once * (once - 1) / (2 * (twice + 1))
    return max(1.0, min(float(times[1:].sum()) + unseen, float(sample.table_rows)))  # 1: of NULL and NaN alone
