"""The input of a learner, `Problem`, and the protocol that it implements: `fit(problem) -> Layout`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.effort import NORMAL
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.block_counter import BlockCounter, RowCounter
from hedgerow.core.learning.cells.merge import Cells
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.workload.candidate_cuts import Kind, begins, cuts_of
from hedgerow.core.workload.query_clauses import Clauses


class Trial(Protocol):
    """A problem of a part of the queries, and what the queries held out read in a layout that was learned from it."""

    @property
    def problem(self) -> Problem: ...

    def reads(self, layout: Layout) -> float: ...

    def with_block_rows(self, block_rows: int) -> Trial: ...


@dataclass(frozen=True)
class Problem:
    """A table to lay out: a sample, weighted predicates, the cuts that may be used, and the least rows of a block.

    `truth` is cuts x sample rows: whether the cut is TRUE on the row.
    """

    sample: Sample
    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    cuts: tuple[Predicate, ...]
    truth: Bools
    block_rows: int
    seed: int = 0
    observed_share: float = 1.0  # observed queries' share of the total weight; the rest have synthetic literals
    counter: BlockCounter | None = None  # of all rows; without it, the sample's rows are counted
    trial: Callable[[], Trial | None] | None = None  # for learners that choose by queries held out
    kind: Kind = "atoms"  # of the cuts
    most_cuts: int = NORMAL.cuts

    @staticmethod
    def build(
        sample: Sample,
        predicates: tuple[Predicate, ...],
        block_rows: int,
        weights: tuple[float, ...] | None = None,
        cuts: Kind = "atoms",
        seed: int = 0,
        most_cuts: int = NORMAL.cuts,
        known: Mapping[Predicate, Bools] = MappingProxyType({}),
    ) -> Problem:
        """Collect the cuts of the predicates and, of those with too few rows for a block, where their values begin.

        Cuts that cannot be evaluated on the sample are left out. `known`: the truth of some cuts, if it was evaluated
        before."""
        if block_rows < 1:
            raise LayoutError(f"a block needs at least one row, not block_rows={block_rows}")
        weights = weights or (1.0,) * len(predicates)
        asked = _outcomes(cuts_of(predicates, weights, cuts, most_cuts), sample, known)
        few = (cut for cut, true in asked.items() if true.sum() < block_rows * sample.fraction)
        begin = (begin for cut in few for begin in begins(cut, sample.rows.distinct))
        added = _outcomes(islice(begin, most_cuts), sample, known)
        truth = dict(sorted((asked | added).items(), key=lambda pair: predicate_text(pair[0])))
        outcomes = np.array(list(truth.values()), bool).reshape(len(truth), len(sample))
        return Problem(
            sample, predicates, weights, tuple(truth), outcomes, block_rows, seed, kind=cuts, most_cuts=most_cuts
        )

    def with_block_rows(self, block_rows: int) -> Problem:
        """The same problem with larger or smaller blocks."""
        if block_rows == self.block_rows:
            return self
        trial = self.trial

        def sized() -> Trial | None:
            made = None if trial is None else trial()
            return None if made is None else made.with_block_rows(block_rows)

        known = dict(zip(self.cuts, self.truth, strict=True))
        how = self.weights, self.kind, self.seed, self.most_cuts, known
        made = Problem.build(self.sample, self.predicates, block_rows, *how)
        return replace(
            made,
            observed_share=self.observed_share,
            counter=self.counter,
            trial=None if trial is None else cache(sized),
        )

    @property
    def sample_block_rows(self) -> int:
        """The least rows of a block, counted in sample rows."""
        return max(1, round(self.block_rows * self.sample.fraction))

    @cached_property
    def clauses(self) -> Clauses:
        """The queries as clauses over the cuts."""
        return Clauses.of(self.cuts, self.predicates, self.weights)

    def cells(self, layout: Layout) -> Cells:
        """The blocks of a preliminary layout as cells, with the facts that an index of these blocks would hold."""
        counter = self.counter or RowCounter(self.sample.rows, 1 / self.sample.fraction)
        known = counter.count(layout)
        rows = known.rows
        outcomes = np.array([possible_outcomes(cut, known) for cut in self.cuts], np.uint8)
        bits = outcomes.reshape(len(self.cuts), len(rows)).T
        empty = (rows == 0)[:, None]
        return Cells(rows, (bits & T_BIT > 0) & ~empty, (bits & (F_BIT | N_BIT) > 0) & ~empty)

    def reads(self, layout: Layout) -> float:
        """The share of the sample's rows that a query reads, as a weighted mean over the queries."""
        cells = replace(self, counter=None).cells(layout)
        skipped = self.clauses.skipped(cells.some, cells.other) @ cells.rows
        return 1 - float(skipped) / ((sum(self.weights) or 1.0) * max(1, int(cells.rows.sum())))


def _outcomes(cuts: Iterable[Predicate], sample: Sample, known: Mapping[Predicate, Bools]) -> dict[Predicate, Bools]:
    truth: dict[Predicate, Bools] = {}
    for cut in cuts:
        with suppress(LayoutError):
            truth[cut] = known[cut] if cut in known else sample.rows.evaluate(cut) == T_BIT
    return truth


class Learner(Protocol):
    """A frozen dataclass of hyperparameters; the same problem and seed give the same layout in any process."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the user named for the learner; the sample has to hold them. None: the queries decide."""

    def fit(self, problem: Problem) -> Layout: ...


@runtime_checkable
class GivesReasons(Protocol):
    """A learner that tells why its layout is as it is."""

    def reasons(self, problem: Problem, layout: Any) -> list[str]: ...
