"""Woodblock (Yang et al., SIGMOD 2020, section 5): an agent that learns, tree by tree, how to grow qd-trees.

A node of a tree is a state, a cut is an action, and the rows that queries skip in the leaves below are the reward. Many
trees grow at a time (`episodes`), a network chooses the cuts, and PPO makes good cuts more likely. The result is the
best tree.

    grow 32 trees  ->  best tree?  ->  PPO on all their cuts  ->  grow 32 trees ...

The defaults differ from the paper: begin with the greedy trees, offer only cuts that occur in an open query, give the
network their gains, replay the best trees, grow parts of the best tree again, and join small cells into blocks.
`Woodblock(**PAPER)` is the paper's algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.kernels import LEAST_GAIN
from hedgerow.core.learning.cells.merge import Cells, merge
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import checked_cells, checked_eps, greedy, tree_of
from hedgerow.core.progress import Progress
from hedgerow.learners.woodblock.agent import Agent, compiled
from hedgerow.learners.woodblock.episodes import Episodes, Forest, following

PAPER: Mapping[str, Any] = {"cells": 1, "greedy": False, "asked": False, "ratios": False, "elites": 0, "regrow": False}
MAX_LEAVES = 32_000  # about: the leaves of all trees that grow at once
MAX_REGROWN_BLOCKS = 8  # the most blocks in a part of the best tree that is grown again
REGROWN_PARTS_TRIED = 3  # the number of regrown parts to try, those with the highest rewards


class Point(NamedTuple):
    """A point of the learning curve: the time and the number of trees so far, and shares of the rows that queries read.

    `best` is the share in the best tree; `mean` is the mean share in the new trees.
    """

    seconds: float
    trees: float
    best: float
    mean: float

    def message(self) -> str:
        rate = self.trees / self.seconds
        return f"{self.trees:,.0f} trees, {rate:.1f} a second; the best reads {100 * self.best:.2f} %"


class Result(NamedTuple):
    """The learned layout, and the learning curve."""

    layout: TreeLayout
    curve: tuple[Point, ...]


@dataclass(frozen=True)
class Woodblock:
    """A learner of a tree of cuts, by trial and error: a network grows trees and learns from their rewards.

    Learning ends after `budget_seconds`, after `max_trees`, or when the best tree reads at most the share `target` of
    the sample, whichever is first. The same seed and number of trees give the same tree.

    `at_once`: the number of trees that grow together between two lessons; by default 32, fewer if they are large.
    `cells`: the number of leaves that make up a block; by default as in `qdtree`.
    `greedy`: begin with greedy trees, and end no worse than `qdtree`.
    `asked`: offer only cuts that occur in an open query.
    `ratios`: give the network the gain ratio of each cut.
    `elites`: the number of recent best trees that are replayed.
    `regrow`: after each round, grow parts of the best tree again.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    budget_seconds: float | None = 300.0
    max_trees: int | None = None
    target: float | None = None
    at_once: int | None = None
    cells: int | None = None
    greedy: bool = True
    asked: bool = True
    ratios: bool = True
    elites: int = 4
    regrow: bool = True

    def fit(self, problem: Problem) -> TreeLayout:
        return self.search(problem).layout

    def search(self, problem: Problem) -> Result:
        """Learn a layout, and record the learning curve."""
        self._check()
        compiled()  # raises the error of a missing extra before any work
        if not problem.cuts:
            return Result(TreeLayout((), ()), ())
        search = _Search(self, problem)
        try:
            if self.greedy:
                search.offer_greedy_trees()
            while not (search.has_grown and self.enough(search)):
                search.round()
        except KeyboardInterrupt:
            if not search.has_grown:
                raise
            search.progress.report("interrupted: the result is the best tree so far")
        return Result(self._finished(problem, search), tuple(search.curve))

    def _check(self) -> None:
        for name in ("max_trees", "at_once", "cells"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise LayoutError(f"woodblock's {name} must be a whole number from 1 on, not {value!r}")
        for name in ("budget_seconds", "target"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not 0 <= value < np.inf):
                raise LayoutError(f"woodblock's {name} must be a number from 0 on, not {value!r}")
        if type(self.elites) is not int or self.elites < 0:
            raise LayoutError(f"woodblock's elites must be a whole number from 0 on, not {self.elites!r}")

    def enough(self, search: _Search) -> bool:
        """True if learning may end."""
        return (
            search.late()
            or (self.max_trees is not None and search.trees >= self.max_trees)
            or (self.target is not None and search.read <= self.target)
        )

    def _finished(self, problem: Problem, search: _Search) -> TreeLayout:
        """Return the best tree with its leaves in blocks; with `greedy`, `qdtree`'s tree if that is better."""
        best = tree_of(problem, search.best.nodes())
        if search.usual is None and search.cells == 1:
            return best
        trees = [_in_blocks(problem, best, search.block_of_leaf(best), search.cells)]
        if search.usual is not None and search.usual != best:
            trees.append(_in_blocks(problem, search.usual, None, checked_cells(problem, None)))
        return min(trees, key=problem.reads)


def _in_blocks(problem: Problem, tree: TreeLayout, block: Ints | None, of_cells: int) -> TreeLayout:
    """Return a tree with its leaves in the given blocks, or in newly joined ones, whichever is better.

    The given blocks must all have enough rows, except if leaves are blocks: then the sample has decided their size.
    """
    cells = problem.cells(tree)
    blocks = []
    if of_cells > 1:
        blocks.append(merge(cells, problem.clauses, problem.block_rows))
    if block is not None and (of_cells == 1 or np.bincount(block, cells.rows).min() >= problem.block_rows):
        blocks.append(block)
    best = max(blocks, key=lambda block_of_leaf: cells.skipped(block_of_leaf, problem.clauses))
    return tree.relabelled(best.tolist())


class _Search:
    """The state of learning: the agent, the best tree so far, and the learning curve."""

    def __init__(self, settings: Woodblock, problem: Problem) -> None:
        self.progress = Progress("woodblock")
        self.settings = settings
        self.problem = problem
        self.cells = checked_cells(problem, settings.cells)
        least = max(1, problem.sample_block_rows // self.cells)
        self.forest = Forest.of(problem, least, settings.asked, settings.ratios)
        self.at_once = settings.at_once or max(4, min(32, MAX_LEAVES * least // max(1, self.forest.rows)))
        self.random = np.random.default_rng(problem.seed)
        self.agent = Agent(self.forest.pieces.width, len(problem.cuts), self.random)
        self.trees = 0.0
        self.curve: list[Point] = []
        self.elites: list[Episodes] = []
        self.best = self._replayed([])
        self.block = np.zeros(self.forest.rows, np.int64)  # the block of each row of the sample, in the best tree
        self.worth = float(self.best.total[0])
        self.usual: TreeLayout | None = None  # the tree of `qdtree`, before its leaves are joined

    @property
    def has_grown(self) -> bool:
        return bool(self.curve or len(self.best.tree) or self.usual)

    @property
    def read(self) -> float:
        """The share of the sample that the best tree reads."""
        return self._read(self.worth)

    def _read(self, worth: float) -> float:
        return float(1 - worth / (self.forest.weight * self.forest.rows))

    def late(self, share: float = 1.0) -> bool:
        """True if this share of the time budget is used up."""
        budget = self.settings.budget_seconds
        return budget is not None and self.progress.seconds >= share * budget

    def offer_greedy_trees(self) -> None:
        """Begin with greedy trees by both criteria; only by the default criterion if that takes half the budget."""
        problem, by_cells = self.problem, self.cells > 1
        place = {cut: i for i, cut in enumerate(problem.cuts)}

        def offer(tree: TreeLayout) -> None:
            self._offer([[place[tree.cuts[c]], a, b] for c, a, b in tree.nodes])

        eps, usual = checked_eps(problem, "gain_ratio", None), checked_cells(problem, None)
        self.usual = greedy(problem, max(1, problem.sample_block_rows // usual), eps, True)
        offer(self.usual if self.cells == usual else greedy(problem, self.forest.least, eps, by_cells))
        if not self.late(0.5):
            offer(greedy(problem, self.forest.least, -1.0, by_cells))

    def round(self) -> None:
        """Grow trees, learn from them, and add a point to the learning curve."""
        grown = self.forest.grown(self.agent.policy(), self.forest.root(self.at_once))
        self.trees += self.at_once
        best = int(grown.total.argmax())
        if grown.total[best] > self.best.total[0]:
            self._offer(grown.nodes(best))
        self.agent.learn(grown)
        if self.settings.regrow:
            until = self.trees + self.at_once
            while self.trees < until and not self.settings.enough(self) and self._regrow():
                pass
        if self.elites:
            self.agent.imitate(self.elites[int(self.random.integers(len(self.elites)))])
        self.curve.append(Point(self.progress.seconds, self.trees, self.read, self._read(float(grown.total.mean()))))
        self.progress.report_sometimes(self.curve[-1].message)

    def _replayed(self, nodes: list[list[int]]) -> Episodes:
        return self.forest.grown(following(nodes), self.forest.root(1), keep=True)

    def _offer(self, nodes: list[list[int]]) -> None:
        """Keep a tree if it is better than the best tree so far."""
        tree = self._replayed(nodes)
        block, worth = self._joined(tree.cells)
        if worth > self.worth:
            self._keep(tree, block[tree.cell], worth)

    def _keep(self, tree: Episodes, block: Ints, worth: float) -> None:
        self.best, self.block, self.worth = tree, np.unique(block, return_inverse=True)[1], worth
        self.elites = [tree, *self.elites][: self.settings.elites]

    def _joined(self, cells: Cells) -> tuple[Ints, float]:
        """Join leaves into blocks; return the block of each, and the rows x weight that queries skip."""
        clauses = self.problem.clauses
        block = np.arange(len(cells))
        if self.cells > 1:
            block = merge(cells, clauses, self.problem.sample_block_rows)
        return block, cells.skipped(block, clauses)

    def block_of_leaf(self, tree: TreeLayout) -> Ints:
        """Return the block of each leaf of the best tree."""
        blocks = np.zeros(tree.blocks, np.int64)
        blocks[tree.assign(self.problem.sample.rows)] = self.block
        return blocks

    def _regrow(self) -> bool:
        """Let the agent grow the part below one node of the best tree again; return False if there is no such node.

        The node is drawn by the rows read below it. New leaves are joined with other leaves of the same blocks.
        """
        best, least = self.best, self.problem.sample_block_rows
        lost = np.maximum(self.forest.weight * best.rows - best.saved, 1e-9)
        lost[(best.rows < 2 * least) | (best.rows > MAX_REGROWN_BLOCKS * least)] = 0
        if not lost.any():
            return False
        at = int(self.random.choice(len(lost), p=lost / lost.sum()))
        path, copies = best.path(at), self.at_once * min(8, self.forest.rows // int(best.rows[at]))
        grown = self.forest.grown(self.agent.policy(), self.forest.below(path, copies))
        self.trees += copies * best.rows[at] / self.forest.rows
        self.agent.learn(grown)

        inside = self.forest.inside(path)
        concerned = np.isin(self.block, self.block[inside])
        around, place = np.unique(best.cell[concerned & ~inside], return_inverse=True)
        old_cells, first = np.unique(best.cell[concerned], return_index=True)
        old_block = np.unique(self.block[concerned][first], return_inverse=True)[1]
        old_worth = best.cells.of(old_cells).skipped(old_block, self.problem.clauses)
        for nodes in (best.below(at), *map(grown.nodes, np.argsort(-grown.total)[:REGROWN_PARTS_TRIED].tolist())):
            part = self.forest.grown(following(nodes), self.forest.below(path, 1), keep=True)
            block, worth = self._joined(part.cells.and_also(best.cells.of(around)))
            if worth > old_worth * (1 + LEAST_GAIN):
                block_of_row = self.block + len(block)  # numbers that no new block has
                block_of_row[inside] = block[part.cell[inside]]
                block_of_row[concerned & ~inside] = block[len(part.cells) + place]
                self._keep(self._replayed(best.nodes(0, at, nodes)), block_of_row, self.worth + worth - old_worth)
                old_worth = worth
        return True
