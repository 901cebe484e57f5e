"""The paper's algorithm against the same done slowly: a query skips a leaf only by the cuts above it."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hedgerow.core.layouts.tree import Path, TreeLayout
from hedgerow.core.learning.cells.merge import Cells, merge_cheapest
from hedgerow.core.learning.problem import Problem
from hedgerow.core.workload.query_clauses import Clauses, Lists
from hedgerow.learners.pando import pando
from hedgerow.learners.pando.forest import Nodes, forest, layout_of
from hedgerow.learners.pando.pando import Pando
from hedgerow.learners.pando.path_facts import facts_of_leaves, promised_facts
from tests.support.tree_problems import a_problem, sampled

randoms = st.integers(0, 2**32).map(Random)


@given(random=randoms)
def test_leaves_have_no_facts_that_their_cuts_exclude(random: Random) -> None:
    _, problem = a_problem(random)
    promised = promised_facts(problem.cuts)
    trees = forest(problem, 2, 1, -1.0, False, 10_000, promised)
    for tree in (layout_of(problem, nodes) for nodes in trees):
        leaf = tree.assign(problem.sample.rows)
        some, other = facts_of_leaves(tree, problem.cuts, promised)
        for number in range(tree.blocks):
            truth = problem.truth[:][:, leaf == number]
            assert (truth.any(axis=1) <= some[number]).all()
            assert ((~truth).any(axis=1) <= other[number]).all()


class ByPaths:
    """All leaves of all trees as paths with their rows; queries skip a leaf by its path."""

    def __init__(self, problem: Problem, k: int) -> None:
        self.problem, self.promised = problem, promised_facts(problem.cuts)
        self.leaves: list[dict[Path, np.ndarray]] = [{(): np.arange(problem.truth.rows)} for _ in range(k)]

    def may(self, path: Path) -> np.ndarray:
        some, other = np.ones((2, 1, len(self.problem.cuts)), bool)
        for cut, left in path:
            some &= self.promised[0 if left else 2, cut]
            other &= self.promised[1 if left else 3, cut]
        return self.problem.clauses.may(some, other)[0]

    def sides(self, tree: int, path: Path, cut: int) -> list[tuple[Path, np.ndarray]]:
        rows = self.leaves[tree][path]
        left = self.problem.truth.of_cut(cut)[rows]
        return [((*path, (cut, True)), rows[left]), ((*path, (cut, False)), rows[~left])]

    def gain(self, tree: int, path: Path, cut: int) -> float:
        sides, before = self.sides(tree, path, cut), self.may(path)
        if min(len(rows) for _, rows in sides) < self.problem.sample_block_rows:
            return 0.0
        beside = np.ones((len(before), self.problem.truth.rows), bool)
        for other in (t for t in range(len(self.leaves)) if t != tree):
            for there, rows in self.leaves[other].items():
                beside[np.ix_(~self.may(there), rows)] = False
        weights = self.problem.clauses.weights.astype(float)
        return float(sum((weights * (before & ~self.may(p))) @ beside[:, rows].sum(axis=1) for p, rows in sides))

    def cut(self, tree: int, path: Path, cut: int) -> None:
        sides = self.sides(tree, path, cut)
        del self.leaves[tree][path]
        self.leaves[tree] |= dict(sides)

    def best(self) -> float:
        cuts = np.unique(self.problem.clauses.facts.items // 2).tolist()  # cuts that no query has are not tried
        gains = (self.gain(t, p, c) for t, leaves in enumerate(self.leaves) for p in leaves for c in cuts)
        return max(gains, default=0.0)


def paths(nodes: Nodes) -> list[Path]:
    found: dict[int, Path] = {0: ()}
    for number, (cut, left, right) in enumerate(nodes):
        found |= {kid: (*found[number], (cut, side)) for kid, side in ((left, True), (right, False)) if kid > 0}
    return [found[number] for number in range(len(nodes))]


@given(random=randoms)
def test_every_cut_is_the_best_by_the_cuts_above(random: Random) -> None:
    _, problem = a_problem(random, most_rows=20)
    k = random.randint(1, 3)
    slow = ByPaths(problem, k)
    trees = forest(problem, k, problem.sample_block_rows, -1.0, False, 10_000, slow.promised)
    ways, made = [paths(nodes) for nodes in trees], [0] * k
    while any(done < len(nodes) for done, nodes in zip(made, trees, strict=True)):
        best = slow.best()
        open_trees = [t for t in range(k) if made[t] < len(trees[t])]
        steps = [(t, ways[t][made[t]], trees[t][made[t]][0]) for t in open_trees]
        step = next((s for s in steps if slow.gain(*s) == pytest.approx(best) and best > 0), None)
        assert step, "a cut was not the best"
        slow.cut(*step)
        made[step[0]] += 1
    assert slow.best() == pytest.approx(0)


@pytest.mark.parametrize("seed", range(30))
def test_leaves_are_as_small_as_the_tuples_of_all_rows_allow(seed: int) -> None:
    rows, problem = sampled(seed)
    most, k = (2, 4, 9, 30)[seed % 4], seed % 3 + 1

    def tuples(trees: list[TreeLayout]) -> int:
        return len(set(zip(*(tree.assign(rows).tolist() for tree in trees), strict=True)))

    with patch.object(pando, "MOST_CELLS", most):
        trees = Pando(k, "skip", "tuned", "trees").trees(problem)
        assert tuples(trees) < most
        promised, sizes = promised_facts(problem.cuts), pando.leaf_sizes(1, len(problem.sample))
        grown = [forest(problem, k, size, -1.0, False, most, promised) for size in sizes]
        by_size = [[layout_of(problem, nodes) for nodes in forest_] for forest_ in grown]
        chosen = [i for i, layouts in enumerate(by_size) if layouts == trees]
        assert any(i == 0 or tuples(by_size[i - 1]) >= most for i in chosen)


# --- blocks -----------------------------------------------------------------------------------------


def slowly_joined(sizes: list[float], may: np.ndarray, clauses: Clauses, least: float) -> set[frozenset[int]]:
    """Join the cheapest pair of all while a block is too small; no test if two pairs cost the same."""
    blocks = [frozenset([i]) for i in range(len(sizes))]

    def cost(block: frozenset[int]) -> float:
        read = clauses.may(may[list(block)].any(axis=0)[None], np.zeros((1, may.shape[1]), bool))[0]
        return sum(sizes[i] for i in block) * float(read @ clauses.weights.astype(float))

    def is_small(block: frozenset[int]) -> bool:
        return sum(sizes[i] for i in block) < least

    while len(blocks) > 1 and any(map(is_small, blocks)):
        pairs = [(a, b) for i, a in enumerate(blocks) for b in blocks[:i] if is_small(a) or is_small(b)]
        prices = sorted((cost(a | b) - cost(a) - cost(b), i) for i, (a, b) in enumerate(pairs))
        assume(len(prices) < 2 or prices[1][0] - prices[0][0] > 1e-6)
        a, b = pairs[prices[0][1]]
        blocks = [block for block in blocks if block not in (a, b)] + [a | b]
    return set(blocks)


@given(random=randoms)
def test_the_cheapest_of_all_pairs_is_joined(random: Random) -> None:
    queries, n, least = random.randint(3, 6), random.randint(1, 8), random.choice((10, 40))
    clauses = Clauses(
        Lists.of([[2 * i] for i in range(2 * queries)]),
        Lists.of([[q, queries + q] for q in range(queries)]),
        np.array([random.uniform(0.5, 4) for _ in range(queries)], np.float32),
    )
    sizes = [random.randint(1, 30) for _ in range(n)]
    some = np.array([[random.random() < 0.6 for _ in range(2 * queries)] for _ in range(n)])
    expected = slowly_joined([float(size) for size in sizes], some, clauses, least)
    blocks = merge_cheapest(Cells(np.array(sizes), some, np.zeros_like(some)), clauses, least)
    assert {frozenset(np.flatnonzero(blocks == b).tolist()) for b in set(blocks.tolist())} == expected
