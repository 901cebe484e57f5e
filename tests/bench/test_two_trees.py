"""The published two trees: Algorithm 1 beside nothing, and the second tree serves what the first leaves."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bench.published_two_trees import tree_beside, two_trees
from hedgerow.core.arrays import Floats
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.support.tree_problems import a_problem

randoms = st.integers(0, 2**32).map(Random)


def skipped_by(tree: TreeLayout, problem: Problem) -> Floats:
    """Return the rows that each query skips, by the outcomes of all cuts on the rows of each leaf."""
    leaves = tree.assign(problem.sample.rows)
    total = np.zeros(len(problem.clauses.needs))
    for leaf in range(tree.blocks):
        truth = problem.truth[:][:, leaves == leaf]
        some, other = truth.any(axis=1)[None], (~truth).any(axis=1)[None]
        total += truth.shape[1] * ~problem.clauses.may(some, other)[0]
    return total


def value(problem: Problem, *trees: TreeLayout) -> float:
    return float(problem.clauses.weights @ np.maximum.reduce([skipped_by(tree, problem) for tree in trees]))


@given(random=randoms)
def test_beside_nothing_it_is_algorithm_1(random: Random) -> None:
    _, problem = a_problem(random)
    published = QdTree("skip", cells=1).fit(problem)
    tree, skipped = tree_beside(problem, np.zeros(len(problem.clauses.needs)))
    rows = problem.sample.rows
    pairs = set(zip(tree.assign(rows).tolist(), published.assign(rows).tolist(), strict=True))
    assert len(pairs) == tree.blocks == published.blocks  # the same leaves, numbered otherwise
    np.testing.assert_allclose(skipped, skipped_by(tree, problem))


@given(random=randoms)
def test_two_trees_never_skip_less_than_one(random: Random) -> None:
    _, problem = a_problem(random)
    first, second = two_trees(problem)
    assert value(problem, first, second) >= value(problem, QdTree("skip", cells=1).fit(problem)) * (1 - 1e-6)
    elsewhere = skipped_by(first, problem)
    tree, skipped = tree_beside(problem, elsewhere)
    np.testing.assert_allclose(skipped, skipped_by(tree, problem))


def test_each_tree_serves_one_column() -> None:
    rows = pa.table({"x": np.arange(64), "y": np.random.default_rng(0).permutation(64)})
    queries = tuple(Compare(col(name), op, lit(32)) for name in "xy" for op in ("<", ">="))
    problem = Problem.build(Sample.of_table(rows), queries, 32, cuts="atoms")
    first, second = two_trees(problem)
    assert value(problem, first) == value(problem, second) == 64  # two queries skip half of the rows
    assert value(problem, first, second) == 128
