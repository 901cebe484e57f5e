"""Queries held out: what is learned from the earlier queries is judged on the later ones.

Some ways to learn fit the queries seen closely, others loosely. How much the next queries resemble the ones seen, only
the workload can tell:

    queries of one shape, as they came   1 2 3 4 5 6 7 8 9
    learned from                         1 2 3 4 5 6
    judged on                                        7 8 9

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
from hedgerow.core.workload.candidate_cuts import Kind
from hedgerow.core.workload.conditions_to_note import conditions_to_note
from hedgerow.core.workload.queries import shape

HELD_OUT = 3  # one of so many queries of a shape is held out
LEAST_HELD_OUT = 20  # fewer queries prove nothing


def problem_of(
    sample: Sample,
    predicates: Sequence[Predicate],
    weights: Sequence[float],
    block_rows: int,
    recurrence: Recurrence = "auto",
    cuts: Kind = "atoms",
    seed: int = 0,
    amounts: Amounts = NORMAL,
) -> Problem:
    """What to learn from the queries: they, synthetic ones like them, and a trial on queries held out."""
    asked, shares, noted, seen = redrawn(predicates, weights, sample, recurrence, seed, amounts.draws)
    problem = replace(Problem.build(noted, asked, block_rows, shares, cuts, seed, amounts.cuts), observed_share=seen)
    if recurrence == 1:
        return problem
    # A learner may ask it for more than one choice.
    trial = cache(lambda: _trial(sample, predicates, weights, block_rows, recurrence, cuts, seed))
    return replace(problem, trial=trial)


@dataclass(frozen=True)
class HeldOut:
    """A problem of a part of the queries; the others, held out, are asked of an index of all the sample's rows.

    `noted`: the conditions that an index would note whatever the layout, had the problem's queries been all.
    """

    problem: Problem
    queries: tuple[Predicate, ...]
    weights: tuple[float, ...]
    sample: Sample
    noted: tuple[Predicate, ...]

    def with_block_rows(self, block_rows: int) -> HeldOut:
        return replace(self, problem=self.problem.with_block_rows(block_rows))

    def reads(self, layout: Layout) -> float:
        """Return the share of rows that a query held out reads in a layout, as a weighted mean."""
        rows = self.sample.rows
        known = (*self.noted, *(f for f in layout.features if isinstance(f, Predicate)))
        described = replace(self.sample, rows=rows.with_truths({p: rows.evaluate(p) for p in known}))
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
) -> HeldOut | None:
    """None if too few queries can be held out."""
    later = _later(predicates)
    earlier = sorted({*range(len(predicates))} - {*later})
    asked, judged = [predicates[i] for i in earlier], [predicates[i] for i in later]
    own, of_judged = [weights[i] for i in earlier], [weights[i] for i in later]
    if len(later) < LEAST_HELD_OUT or not sum(own) or not sum(of_judged):
        return None  # of queries without weight there is no mean
    drawn = redrawn(asked, own, sample, recurrence, seed, QUICK.draws)
    half = drawn.sample.part(-(-len(sample) // 2), seed)
    problem = Problem.build(half, drawn.predicates, block_rows, drawn.weights, cuts, seed, QUICK.cuts)
    counter = RowCounter(drawn.sample.rows, 1 / sample.fraction)
    problem = replace(problem, observed_share=drawn.observed_share, counter=counter)
    atoms = {atom for query in asked for atom in atoms_of(query)}
    noted = (*(p for p in sample.rows.truths if p in atoms), *conditions_to_note(asked, drawn.sample.rows.distinct))
    return HeldOut(problem, tuple(judged), tuple(of_judged), drawn.sample, noted)


def _later(predicates: Sequence[Predicate]) -> list[int]:
    """Return the places of the last third of each shape's queries."""
    by_shape: dict[str, list[int]] = {}
    for i, p in enumerate(predicates):
        by_shape.setdefault(shape(p), []).append(i)
    return sorted(i for places in by_shape.values() for i in places[len(places) - len(places) // HELD_OUT :])
