"""A second layout beside a first: the sum of the minima, whatever the learners, and where it must pay."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.complement import MAX_ROUNDS, fit_complement, rows_read
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import virtual_index
from hedgerow.core.predicates.nodes import And, Compare, Predicate, col, lit
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.learners.curves.range import Range
from hedgerow.learners.curves.zorder import ZOrder
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.support.tree_problems import a_problem

LEARNERS: list[Learner] = [QdTree(), Range(), ZOrder()]


def slowly(layout: Layout, problem: Problem) -> list[float]:
    """Row by row: a query reads every block that its index does not exclude."""
    ids, index = layout.assign(problem.sample.rows), virtual_index(layout, problem.sample)
    found = []
    for p in problem.predicates:
        opened = set(np.flatnonzero(index.to_open(p)).tolist())
        matching = {b for b, bit in zip(ids.tolist(), problem.sample.rows.evaluate(p), strict=True) if bit == T_BIT}
        assert matching <= opened
        found.append(sum(b in opened for b in ids.tolist()) / len(ids))
    return found


@given(random=st.integers(0, 2**32).map(Random))
def test_together_is_the_sum_of_the_minima_and_never_more_than_given(random: Random) -> None:
    _, problem = a_problem(random, 60)
    assume(problem.predicates)
    first, second = random.choice(LEARNERS), random.choice(LEARNERS)
    reads = rows_read(first.fit(problem), problem).tolist()
    if random.random() < 0.3:
        reads = [random.random() for _ in reads]
    found = fit_complement(second, problem, reads)
    weights = problem.weights
    minima = [min(a, b) for a, b in zip(reads, slowly(found.layout, problem), strict=True)]
    together = sum(w * m for w, m in zip(weights, minima, strict=True)) / sum(weights)
    alone = sum(w * r for w, r in zip(weights, reads, strict=True)) / sum(weights)
    assert (found.before, found.after) == pytest.approx((alone, together))
    assert found.after <= found.before + 1e-9
    assert fit_complement(second, problem, reads).layout == found.layout


@dataclass(frozen=True)
class Watched:
    """Notes what it was given to learn from."""

    learner: Learner
    seen: list[tuple[Predicate, ...]] = field(default_factory=list)

    def fit(self, problem: Problem) -> Layout:
        self.seen.append(problem.predicates)
        return self.learner.fit(problem)


def two_kinds() -> Problem:
    """Half of the queries ask for x, half for y, which have nothing to do with each other."""
    n = 2000
    order = np.random.default_rng(1)
    table = pa.table({"x": order.permutation(n), "y": order.permutation(n)})
    asked = [
        And((Compare(col(c), ">=", lit(v)), Compare(col(c), "<", lit(v + 100)))) for v in range(0, n, 100) for c in "xy"
    ]
    return Problem.build(Sample.of_table(table), tuple(asked), 100)


@pytest.mark.parametrize("second", [QdTree(), Range()], ids=["qdtree", "range"])
def test_the_second_takes_what_the_first_does_badly(second: Learner) -> None:
    problem = two_kinds()
    first = Range(("x",)).fit(problem)
    watched = Watched(second)
    found = fit_complement(watched, problem, rows_read(first, problem).tolist())
    assert found.before > 0.5
    assert found.after < 0.12  # five in a hundred match
    assert len(watched.seen) <= 2 * MAX_ROUNDS
    assert all(any("y" in str(p) for p in seen) for seen in watched.seen)


def test_taking_turns_never_gets_worse() -> None:
    """The first is learned anew beside the second, and so on: what is read together falls or stays."""
    problem = two_kinds()
    layout, last = QdTree().fit(problem), np.inf
    for _ in range(3):
        reads = rows_read(layout, problem)
        found = fit_complement(QdTree(), problem, reads.tolist())
        assert found.after <= min(last, found.before) + 1e-9
        layout, last = found.layout, found.after


def test_nothing_to_gain() -> None:
    problem = two_kinds()
    found = fit_complement(Range(), problem, [0.0] * len(problem.predicates))
    assert (found.before, found.after) == (0.0, 0.0)
    assert found.layout == Range().fit(problem)
