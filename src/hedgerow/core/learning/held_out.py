"""Held-out queries: a layout that is learned from the earlier queries is tested on the later ones.

Some options of learners fit the observed queries closely, others loosely. The better option depends on the workload:
how much the next queries resemble the earlier ones.

    queries of one shape, as they came   1 2 3 4 5 6 7 8 9
    learned from                         1 2 3 4 5 6
    tested on                                        7 8 9

A trial is cheap: it learns from half of the sample's rows, with fewer synthetic queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from hedgerow.core.effort import NORMAL, QUICK, Amounts
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.synthetic_queries import Recurrence, redrawn
from hedgerow.core.learning.virtual_blocks import index_of_assignment
from hedgerow.core.predicates.nodes import Predicate, atoms_of
from hedgerow.core.workload.candidate_cuts import USUAL, Kind
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import shape

HELD_OUT = 3  # one of three queries of a shape is held out
LEAST_HELD_OUT = 20  # fewer held-out queries prove nothing


def problem_of(
    sample: Sample,
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    block_rows: int,
    recurrence: Recurrence = "auto",
    cuts: Kind = USUAL,
    seed: int = 0,
    amounts: Amounts = NORMAL,
) -> Problem:
    """Build a problem from the queries, with synthetic queries like them, and a trial on held-out queries."""
    drawn = redrawn(predicates, weights, sample, recurrence, seed, amounts.draws)
    problem = Problem.build(drawn.sample, drawn.predicates, block_rows, drawn.weights, cuts, seed, amounts)
    problem = replace(problem, observed_share=drawn.observed_share)
    if recurrence == 1:
        return problem
    # Cached, because a learner may use the trial for more than one option.
    trial = cache(lambda: _trial(sample, predicates, weights, block_rows, recurrence, cuts, seed, amounts.advanced))
    return replace(problem, trial=trial)


@dataclass(frozen=True)
class HeldOut:
    """A problem with a part of the queries; the held-out queries are tested on an index of all the sample's rows.

    `noted` are the conditions that an index would note under any layout, if the problem's queries were all queries.
    """

    problem: Problem
    queries: tuple[Predicate, ...]
    weights: tuple[float, ...]
    sample: Sample
    noted: tuple[Predicate, ...]

    def with_block_rows(self, block_rows: int) -> HeldOut:
        return replace(self, problem=self.problem.with_block_rows(block_rows))

    def reads(self, layout: Layout) -> float:
        """Return the share of rows that a held-out query reads in a layout, as a weighted mean."""
        rows = self.sample.rows
        noted = (*self.noted, *(f for f in layout.features if isinstance(f, Predicate)))
        described = replace(self.sample, rows=rows.with_truths({p: rows.evaluate(p) for p in noted}))
        index = index_of_assignment(layout.assign(rows), layout.blocks, described)
        read = [index.blocks.rows[index.to_open(p)].sum() for p in self.queries]
        return float(np.dot(read, self.weights)) / (sum(self.weights) * len(rows))


def _trial(
    sample: Sample,
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    block_rows: int,
    recurrence: Recurrence,
    cuts: Kind,
    seed: int,
    advanced: int | None,
) -> HeldOut | None:
    """Hold out the later queries; return None if they are too few."""
    later = _later(predicates)
    earlier = sorted({*range(len(predicates))} - {*later})
    training, held_out = [predicates[i] for i in earlier], [predicates[i] for i in later]
    training_weights, held_out_weights = [weights[i] for i in earlier], [weights[i] for i in later]
    if len(later) < LEAST_HELD_OUT or not sum(training_weights) or not sum(held_out_weights):
        return None  # queries without weight have no weighted mean
    drawn = redrawn(training, training_weights, sample, recurrence, seed, QUICK.draws)
    quick = replace(QUICK, advanced=advanced)
    half = drawn.sample.part(-(-len(sample) // 2), seed)
    problem = Problem.build(half, drawn.predicates, block_rows, drawn.weights, cuts, seed, quick)
    counter = RowCounter(drawn.sample.rows, 1 / sample.fraction)
    problem = replace(problem, observed_share=drawn.observed_share, counter=counter)
    atoms = {atom for query in training for atom in atoms_of(query)}
    noted = (*(p for p in sample.rows.truths if p in atoms), *conditions_to_note(training, drawn.sample.rows.distinct))
    return HeldOut(problem, tuple(held_out), tuple(held_out_weights), drawn.sample, noted)


def _later(predicates: Sequence[Predicate]) -> list[int]:
    """Return the places of the last third of each shape's queries."""
    by_shape: dict[str, list[int]] = {}
    for i, p in enumerate(predicates):
        by_shape.setdefault(shape(p), []).append(i)
    return sorted(i for places in by_shape.values() for i in places[len(places) - len(places) // HELD_OUT :])
