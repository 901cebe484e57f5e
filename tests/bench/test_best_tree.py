"""The bound on what trees read, against every tree of small problems."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.best_tree import least_read, share_read
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.support.tree_problems import Slow, a_problem

randoms = st.integers(0, 2**32).map(Random)


def most_skipped(slow: Slow, here: frozenset[int], known: dict[frozenset[int], float]) -> float:
    """Return the weight x rows that the queries skip in the best tree over these rows, by trying every tree."""
    if here not in known:
        known[here] = slow.skipped(here)  # as a leaf
        for cut in slow.cuts:
            sides = slow.sides(cut, here)
            if min(map(len, sides)) >= slow.least:
                known[here] = max(known[here], sum(most_skipped(slow, side, known) for side in sides))
    return known[here]


@given(random=randoms)
def test_no_tree_reads_less_than_the_bound(random: Random) -> None:
    table, problem = a_problem(random, 16)
    if not problem.predicates or len(problem.cuts) > 6:
        return
    slow = Slow(table.rows, problem)
    total = sum(problem.weights) * len(table)
    best = 1 - most_skipped(slow, frozenset(range(len(table))), {}) / total
    greedy = share_read(problem, QdTree("skip", cells=1).fit(problem))
    assert least_read(problem) <= best + 1e-9 <= greedy + 2e-9


def test_the_bound_is_reached_where_each_class_is_a_block() -> None:
    reached = 0
    for seed in range(200):
        _, problem = a_problem(Random(seed))
        if problem.predicates and problem.cuts:
            reached += least_read(problem) == pytest.approx(share_read(problem, QdTree("skip", cells=1).fit(problem)))
    assert reached > 5


def test_a_tree_reads_what_its_leaves_cannot_exclude() -> None:
    for seed in range(120):
        table, problem = a_problem(Random(seed))
        if not problem.predicates or sum(problem.weights) != problem.clauses.weights.sum():
            continue  # a query that skips every set of rows, or none, has no clauses
        tree = QdTree("skip", cells=1).fit(problem)
        slow, leaves = Slow(table.rows, problem), tree.assign(problem.sample.rows)
        blocks = [frozenset((leaves == leaf).nonzero()[0].tolist()) for leaf in range(tree.blocks)]
        skipped = sum(map(slow.skipped, blocks))
        assert share_read(problem, tree) == pytest.approx(1 - skipped / (sum(problem.weights) * len(table)))
