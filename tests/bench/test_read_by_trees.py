"""Trees as the index name every block that a query needs, and reach the paper's toy (Fig. 2)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.read_by_trees import TreeIndex
from hedgerow.core.learning.problem import Problem
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.workload.query_clauses import Clauses
from hedgerow.learners.pando.pando import Pando
from tests.learners.pando.test_pando import toy
from tests.support.tree_problems import a_problem, sampled

randoms = st.integers(0, 2**32).map(Random)


def tree_index(learner: Pando, problem: Problem) -> TreeIndex:
    trees, rows = learner.trees(problem), problem.sample.rows
    return TreeIndex.of(trees, [tree.assign(rows) for tree in trees], learner.fit(problem).assign(rows))


@given(random=randoms)
def test_trees_name_every_block_with_a_row_that_matches(random: Random) -> None:
    _, problem = a_problem(random)
    learner = Pando(random.randint(1, 3), "skip", random.choice((1, "tuned")), "trees")
    blocks = learner.fit(problem).assign(problem.sample.rows)
    index = tree_index(learner, problem)
    for p in problem.predicates:
        matches = problem.sample.rows.evaluate(p) == T_BIT
        assert index.to_open(p)[blocks[matches]].all()


@pytest.mark.parametrize("seed", range(30))
def test_trees_read_all_rows_as_estimated(seed: int) -> None:
    """The estimate knows the table's rows, also those with leaves that no row of the sample has together."""
    rows, problem = sampled(seed)
    learner = Pando(seed % 3 + 1, "skip", (1, "tuned")[seed % 2], "trees")
    layout, estimate = learner._blocks(problem, learner.k)
    trees = learner.trees(problem)
    index = TreeIndex.of(trees, [tree.assign(rows) for tree in trees], layout.assign(rows))
    sizes = index.blocks.rows
    assert len(sizes) == 1 or learner.cells == 1 or sizes.min() >= problem.block_rows
    opened = np.array([index.to_open(p) for p in problem.predicates])
    kept = np.array([Clauses.of(problem.cuts, [p], [1.0]).needs.items.size > 0 for p in problem.predicates])
    assert (opened[kept] @ sizes).mean() <= estimate * sizes.sum() + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_toy_of_fig_2_read_by_its_trees(seed: int) -> None:
    """MTO reads half of it or more. Two trees read 2/5 at best: a block of rows that match, and one of outliers."""
    problem, queries = toy(seed)

    def share(learner: Pando) -> float:
        index = tree_index(learner, problem)
        rows = index.blocks.rows
        return float(np.mean([rows[index.to_open(q)].sum() for q in queries]) / rows.sum())

    assert share(Pando(2, "skip", "tuned", "trees")) <= 0.49 < 0.5 <= share(Pando(1, "skip", 1, "trees"))
