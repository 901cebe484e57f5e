"""The input of a learner, `Problem`, and the protocol of learners: `fit(problem) -> Layout`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hedgerow.core.effort import NORMAL, Amounts
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.block_counter import BlockCounter, RowCounter
from hedgerow.core.learning.cells.merge import Cells
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.truth import Truth, Words, pack
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.workload.candidate_cuts import USUAL, Kind, begins, cuts_of, is_advanced, without_value
from hedgerow.core.workload.query_clauses import Clauses

_MANY_MISSING = 0.5  # rows without a value may be kept apart if they are a larger share than this


class Trial(Protocol):
    """A problem with a part of the queries; layouts that are learned from it are tested on the held-out queries."""

    @property
    def problem(self) -> Problem: ...

    def reads(self, layout: Layout) -> float:
        """Return the share of rows that a held-out query reads in the layout, as a weighted mean."""

    def with_block_rows(self, block_rows: int) -> Trial: ...


@dataclass(frozen=True)
class Problem:
    """A table to lay out: a sample, weighted predicates, the candidate cuts, and the least rows of a block.

    `truth`: whether each cut is TRUE on each row of the sample.
    """

    sample: Sample
    predicates: tuple[Predicate, ...]
    weights: tuple[float, ...]
    cuts: tuple[Predicate, ...]
    truth: Truth
    block_rows: int
    seed: int = 0
    observed_share: float = 1.0  # observed queries' share of the total weight; the rest have synthetic literals
    counter: BlockCounter | None = None  # counts the rows of the whole table; None: the sample's rows are counted
    trial: Callable[[], Trial | None] | None = None  # for learners that choose an option by held-out queries
    kind: Kind = USUAL  # the kind of the cuts
    amounts: Amounts = NORMAL

    @staticmethod
    def build(
        sample: Sample,
        predicates: tuple[Predicate, ...],
        block_rows: int,
        weights: tuple[float, ...] | None = None,
        cuts: Kind = USUAL,
        seed: int = 0,
        amounts: Amounts = NORMAL,
        known: Mapping[Predicate, Words] = MappingProxyType({}),
    ) -> Problem:
        """Collect the cuts of the predicates.

        If these are the usual ones, a cut with too few rows for a block gets others beside it: where its values begin,
        and whether a row has a value at all, if most rows have none.
        Cuts that cannot be evaluated on the sample are left out. `known`: the packed truth of cuts that were evaluated
        before.
        """
        if block_rows < 1:
            raise LayoutError(f"a block needs at least one row, not block_rows={block_rows}")
        weights = weights or (1.0,) * len(predicates)
        from_queries = _outcomes(cuts_of(predicates, weights, cuts, amounts), sample, known)
        least = block_rows * sample.fraction if "usual" in cuts else 0
        rare = [cut for cut, true in from_queries.items() if np.bitwise_count(true).sum() < least]
        without = dict.fromkeys(chain.from_iterable(map(without_value, rare)))
        missing = _outcomes((c for c in without if amounts.advanced is None or not is_advanced(c)), sample, known)
        many = _MANY_MISSING * len(sample)
        added = {cut: true for cut, true in missing.items() if np.bitwise_count(true).sum() > many}
        where_values_begin = (begin for cut in rare for begin in begins(cut, sample.rows.distinct))
        added |= _outcomes(islice(where_values_begin, amounts.cuts), sample, known)
        packed = dict(sorted((from_queries | added).items(), key=lambda pair: predicate_text(pair[0])))
        truth = Truth.joined(list(packed.values()), len(sample))
        return Problem(sample, predicates, weights, tuple(packed), truth, block_rows, seed, kind=cuts, amounts=amounts)

    def with_block_rows(self, block_rows: int) -> Problem:
        """Return the same problem with larger or smaller blocks."""
        if block_rows == self.block_rows:
            return self
        trial = self.trial

        def sized() -> Trial | None:
            original = None if trial is None else trial()
            return None if original is None else original.with_block_rows(block_rows)

        truth = dict(zip(self.cuts, self.truth.words, strict=True))
        options = self.weights, self.kind, self.seed, self.amounts, truth
        return replace(
            Problem.build(self.sample, self.predicates, block_rows, *options),
            observed_share=self.observed_share,
            counter=self.counter,
            trial=None if trial is None else cache(sized),
        )

    def of_part(self, sample: Sample) -> Problem:
        """Return the problem of a part of the table, with the queries that may match rows like those of its sample."""
        stats = sample.rows.stats(np.zeros(len(sample), np.int64), 1)
        asked = zip(self.predicates, self.weights, strict=True)
        kept = [(p, weight) for p, weight in asked if possible_outcomes(p, stats)[0] & T_BIT]
        predicates, weights = tuple(p for p, _ in kept), tuple(weight for _, weight in kept)
        part = Problem.build(sample, predicates, self.block_rows, weights, self.kind, self.seed, self.amounts)
        return replace(part, observed_share=self.observed_share)

    def without_rows(self) -> Problem:
        """Return the problem without what was made of its sample, to be sent to where other rows are."""
        sample = replace(self.sample, rows=Rows({}))
        return replace(self, sample=sample, cuts=(), truth=Truth.joined((), 0), counter=None, trial=None)

    @property
    def sample_block_rows(self) -> int:
        """The least rows of a block, counted in sample rows."""
        return max(1, round(self.block_rows * self.sample.fraction))

    @cached_property
    def clauses(self) -> Clauses:
        """The queries as clauses over the cuts."""
        return Clauses.of(self.cuts, self.predicates, self.weights)

    @property
    def table_counter(self) -> BlockCounter:
        return self.counter or RowCounter(self.sample.rows, 1 / self.sample.fraction)

    def cells(self, layout: Layout) -> Cells:
        """Return the blocks of a preliminary layout as cells, with the facts in an index of these blocks."""
        stats = self.table_counter.count(layout)
        rows = stats.rows
        outcomes = np.array([possible_outcomes(cut, stats) for cut in self.cuts], np.uint8)
        bits = outcomes.reshape(len(self.cuts), len(rows)).T
        empty = (rows == 0)[:, None]
        return Cells(rows, (bits & T_BIT > 0) & ~empty, (bits & (F_BIT | N_BIT) > 0) & ~empty)

    def reads(self, layout: Layout) -> float:
        """Return the share of the sample's rows that a query reads, as a weighted mean over the queries."""
        cells = replace(self, counter=None).cells(layout)
        skipped = self.clauses.skipped(cells.some, cells.other) @ cells.rows
        return 1 - float(skipped) / ((sum(self.weights) or 1.0) * max(1, int(cells.rows.sum())))


def _outcomes(cuts: Iterable[Predicate], sample: Sample, known: Mapping[Predicate, Words]) -> dict[Predicate, Words]:
    truth: dict[Predicate, Words] = {}
    for cut in cuts:
        with suppress(LayoutError):
            truth[cut] = known[cut] if cut in known else pack(sample.rows.evaluate(cut)[None] == T_BIT)[0]
    return truth


class Learner(Protocol):
    """A frozen dataclass of hyperparameters; the same problem and seed give the same layout in any process."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the user named for the learner; the sample must contain them. Empty: the queries decide."""

    def fit(self, problem: Problem) -> Layout: ...


@runtime_checkable
class GivesReasons(Protocol):
    """A learner that can explain its layout."""

    def reasons(self, problem: Problem, layout: Any) -> list[str]: ...
