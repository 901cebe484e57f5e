"""What a learner is given, and what it has to offer: `fit(problem) -> Layout`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from hedgerow.core.cuts import Kind, cuts_of
from hedgerow.core.errors import LayoutError
from hedgerow.core.expr import TRUE, Predicate
from hedgerow.core.layout import Layout
from hedgerow.core.sample import Sample
from hedgerow.core.stats import T_BIT, Bits, Bools


@dataclass(frozen=True)
class Problem:
    """One table: a sample, the predicates to skip for with their weights, cuts, and the least rows of a block."""

    sample: Sample
    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    cuts: tuple[Predicate, ...]
    block_rows: int
    seed: int = 0

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
    def outcomes(self) -> Bits:
        """cuts x sample rows: the outcome bit, NULL told from FALSE."""
        rows = [self.sample.rows.evaluate(c) for c in self.cuts]
        return np.array(rows, np.uint8).reshape(len(self.cuts), len(self.sample))

    @property
    def asks(self) -> bool:
        """Some query leaves rows out."""
        return any(p != TRUE for p in self.predicates)


def _known(sample: Sample, cut: Predicate) -> bool:
    try:
        sample.rows.evaluate(cut)
    except LayoutError:
        return False
    return True


class Learner(Protocol):
    """A frozen dataclass of hyperparameters; the same problem and seed give the same layout in any process."""

    def fit(self, problem: Problem) -> Layout: ...
