"""What a learner is given, and what it has to offer: `fit(problem) -> Layout`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Protocol

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.cells.merge import Cells
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, Compare, CompareTerms, In, Or, Predicate, columns_of, walk
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import F_BIT, MAX_DISTINCT, N_BIT, T_BIT, Bools, Stats
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.workload.candidate_cuts import Kind, cuts_of
from hedgerow.core.workload.query_clauses import Clauses


@dataclass(frozen=True)
class Problem:
    """One table: a sample, the predicates to skip for with their weights, cuts, and the least rows of a block.

    `truth` is cuts x sample rows: TRUE or not.
    """

    sample: Sample
    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    cuts: tuple[Predicate, ...]
    truth: Bools
    block_rows: int
    seed: int = 0
    seen: float = 1.0  # the share of the weight that queries have which were really asked; the others are drawn
    measure: Callable[[Layout], Stats] | None = None  # what all rows say of each block; only the sample does without it

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
        truth: dict[Predicate, Bools] = {}
        for cut in cuts_of(predicates, weights, cuts):
            with suppress(LayoutError):
                truth[cut] = sample.rows.evaluate(cut) == T_BIT
        known = np.array(list(truth.values()), bool).reshape(len(truth), len(sample))
        return Problem(sample, predicates, weights, tuple(truth), known, block_rows, seed)

    @property
    def sample_block_rows(self) -> int:
        """The least rows of a block, counted in sample rows."""
        return max(1, round(self.block_rows * self.sample.fraction))

    @cached_property
    def clauses(self) -> Clauses:
        """The queries over the cuts."""
        return Clauses.of(self.cuts, self.predicates, self.weights)

    def cells(self, layout: Layout) -> Cells:
        """What is known of the rows in each block of a layout that is not final yet: as the index would know it."""
        if self.measure is not None:
            known = self.measure(layout)
            rows = known.rows
        else:
            known = self.sample.rows.stats(layout.assign(self.sample.rows), layout.blocks)
            rows = np.round(known.rows / self.sample.fraction).astype(np.int64)
        bits = (
            np.array([possible_outcomes(cut, known) for cut in self.cuts], np.uint8)
            .reshape(len(self.cuts), len(rows))
            .T
        )
        empty = (rows == 0)[:, None]
        return Cells(rows, (bits & T_BIT > 0) & ~empty, (bits & (F_BIT | N_BIT) > 0) & ~empty)

    def reads(self, layout: Layout) -> float:
        """The share of the sample's rows in blocks that queries cannot skip, averaged over the queries."""
        cells = replace(self, measure=None).cells(layout)
        skipped = self.clauses.skipped(cells.some, cells.other) @ cells.rows
        return 1 - float(skipped) / ((sum(self.weights) or 1.0) * max(1, int(cells.rows.sum())))


def unanswered(predicates: Sequence[Predicate], sample: Sample, limit: int = 128) -> tuple[Predicate, ...]:
    """Conditions that bounds and few values of a block do not answer: columns against each other, equalities on a
    column of many values, and ANDs and ORs about several columns that come again, such as a whole query that is asked
    twice. The most asked for; of these the index should note the outcomes themselves."""
    counts: Counter[Predicate] = Counter()
    for part in (part for p in predicates for part in set(walk(normalise(p)))):
        match part:
            case CompareTerms():
                counts[part] += 1
            case And() | Or() if len(columns_of(part)) > 1:
                counts[part] += 1
            case Compare(term, "=", _) | In(term, (_, *_)) if sample.rows.distinct(term) > MAX_DISTINCT:
                counts[part] += 1
    often = (p for p, n in counts.most_common() if n > 1 or not isinstance(p, And | Or))
    return tuple(sorted(islice(often, limit), key=predicate_text))


class Learner(Protocol):
    """A frozen dataclass of hyperparameters; the same problem and seed give the same layout in any process."""

    def fit(self, problem: Problem) -> Layout: ...
