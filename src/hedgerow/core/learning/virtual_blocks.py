"""Blocks made of a sample's rows, to estimate the blocks that a query would open in the whole table.

An index notes the outcomes of conditions such as `part = 4711`, which bounds cannot decide. A sample of 1 % lacks most
of the few rows of such a condition, so too many blocks seem to be skipped:

    block               1     2     3     4     5
    rows in the table   3     4     0     1     2
    in the sample       0     1     0     0     0

The table has more such rows than the sample; any block that bounds do not exclude may have them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
    """Return the index of `n` blocks if the sample were the whole table, with row i in block `blocks[i]`."""
    return BlockIndex(sample.rows.stats(blocks, n))


@dataclass(frozen=True)
class VirtualBlocks:
    """A layout's blocks, without copies of rows: the block of each row of the sample, and the number of blocks."""

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
        """The index with only the bounds and values of the blocks, without the outcomes of conditions."""
        return index_of_assignment(self.block, self.blocks, replace(self.sample, rows=self.sample.rows.with_truths({})))

    @cached_property
    def _mean_rows_cache(self) -> dict[Term, float]:
        return {}

    def chances(self, p: Predicate) -> Floats:
        """Return for each block the probability that a query for `p` opens it."""
        opened = self.index.to_open(p)
        chances = opened.astype(float)
        if self.sample.fraction == 1:
            return chances
        others = self._bounds.to_open(p) & ~opened
        if not others.any():
            return chances
        try:
            matches = np.bincount(self.block[self.sample.rows.evaluate(p) == T_BIT], minlength=self.blocks)
        except LayoutError:  # only Spark can evaluate it
            return chances
        chances[others] = 1 - np.exp(-self._unseen_rows(p, matches) / others.sum())
        return chances

    def _unseen_rows(self, p: Predicate, matches: Ints) -> float:
        """Estimate how many of the table's matching rows are in blocks where the sample has no matching row.

        `matches` is the number of the sample's matching rows in each block. Good and Turing's estimate: the probability
        that the next row is in a new block is the share of the sample's matching rows that are alone in their block.
        """
        total, mean_rows = float(matches.sum()), self._mean_rows(p)
        single = float((matches == 1).sum()) / total if total else 1.0
        if mean_rows is None:
            return single * total / self.sample.fraction
        # Bayes' estimate of the table's matching rows: `total` rows of the sample correct the guess `mean_rows` (an
        # exponential prior with this mean).
        return single * (total + 1) / (self.sample.fraction + 1 / mean_rows)

    def _mean_rows(self, p: Predicate) -> float | None:
        """Estimate the table's matching rows by the mean number of rows of a value; None without an equality or IN."""
        match p:
            case Compare(term, "=", _):
                return self._rows_of_value(term)
            case In(term, literals):
                rows = self._rows_of_value(term)
                return None if rows is None else len(literals) * rows
            case And(kids):
                return min((rows for rows in map(self._mean_rows, kids) if rows is not None), default=None)
        return None

    def _rows_of_value(self, term: Term) -> float | None:
        if term not in self._mean_rows_cache and self.sample.rows.distinct(term):
            self._mean_rows_cache[term] = self.sample.table_rows / distinct_in_table(self.sample, term)
        return self._mean_rows_cache.get(term)


def distinct_in_table(sample: Sample, term: Term) -> float:
    """Estimate the number of values in the table, from the values that the sample has once or twice (Chao)."""
    places = sample.rows.ranks(term).places
    times = np.bincount(np.bincount(places[places >= 0]), minlength=3)
    guessed = float(values_by_chao(times[1:].sum(), times[1], times[2]))
    return max(1.0, min(guessed, float(sample.table_rows)))  # at least 1, even if all values are NULL or NaN


def values_by_chao(known: Any, once: Any, twice: Any) -> Any:
    """Estimate the number of values: a sample has `known` ones, `once` and `twice` of them so often; also of arrays."""
    return known + once * (once - 1) / (2 * (twice + 1))
