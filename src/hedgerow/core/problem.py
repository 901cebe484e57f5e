"""What a learner is given, and what it has to offer: `fit(problem) -> Layout`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from hedgerow.core.clauses import Clauses
from hedgerow.core.cuts import Kind, cuts_of
from hedgerow.core.errors import LayoutError
from hedgerow.core.expr import Predicate
from hedgerow.core.layout import Layout
from hedgerow.core.merge import Cells
from hedgerow.core.sample import Sample
from hedgerow.core.stats import T_BIT, Bools


@dataclass(frozen=True)
class Problem:
    """One table: a sample, the predicates to skip for with their weights, cuts, and the least rows of a block."""

    sample: Sample
    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    cuts: tuple[Predicate, ...]
    block_rows: int
    seed: int = 0
    count: Callable[[Layout, tuple[Predicate, ...]], Cells] | None = None  # of all rows; only the sample's without it

    @staticmethod
    def build(
        sample: Sample,
        predicates: tuple[Predicate, ...],
        block_rows: int,
        weights: tuple[float, ...] | None = None,
        cuts: Kind = "atoms",
        seed: int = 0,
    ) -> Problem:
        """Cuts that the sample can say nothing about are left out."""
        if block_rows < 1:
            raise LayoutError(f"a block needs at least one row, not block_rows={block_rows}")
        weights = weights or (1.0,) * len(predicates)
        found = cuts_of(predicates, weights, cuts)
        return Problem(sample, predicates, weights, tuple(c for c in found if _known(sample, c)), block_rows, seed)

    @property
    def sample_block_rows(self) -> int:
        """The least rows of a block, counted in sample rows."""
        return max(1, round(self.block_rows * self.sample.fraction))

    @cached_property
    def truth(self) -> Bools:
        """cuts x sample rows: TRUE or not."""
        rows = [self.sample.rows.evaluate(c) == T_BIT for c in self.cuts]
        return np.array(rows, bool).reshape(len(self.cuts), len(self.sample))

    @cached_property
    def clauses(self) -> Clauses:
        """The queries over the cuts."""
        return Clauses.of(self.cuts, self.predicates, self.weights)

    def cells(self, layout: Layout) -> Cells:
        """What is known of the rows in each block of a layout that is not final yet."""
        if self.count is not None:
            return self.count(layout, self.cuts)
        ids = layout.assign(self.sample.rows)
        rows = np.bincount(ids, minlength=layout.blocks)
        some = np.stack([np.bincount(ids, t, layout.blocks) for t in self.truth], axis=1) if len(self.cuts) else None
        held = np.zeros((layout.blocks, 0)) if some is None else some
        return Cells(np.round(rows / self.sample.fraction).astype(np.int64), held > 0, held < rows[:, None])


def _known(sample: Sample, cut: Predicate) -> bool:
    try:
        sample.rows.evaluate(cut)
    except LayoutError:
        return False
    return True


class Learner(Protocol):
    """A frozen dataclass of hyperparameters; the same problem and seed give the same layout in any process."""

    def fit(self, problem: Problem) -> Layout: ...
