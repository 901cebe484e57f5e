"""Woodblock (Yang et al., SIGMOD 2020, section 5): an agent that learns, tree by tree, how to grow qd-trees.

A node of a tree is a state, a cut is an action, and the rows that queries skip in the leaves below are the reward. Many
trees grow at a time (`episodes`), a network chooses the cuts, and PPO makes good cuts more likely. The result is the
best tree.

    grow 32 trees  ->  best tree?  ->  PPO on all their cuts  ->  grow 32 trees ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import tree_of
from hedgerow.core.progress import Progress
from hedgerow.learners.woodblock.agent import Agent, compiled
from hedgerow.learners.woodblock.episodes import Forest

Reward = Choice["skipped", "log"]
MAX_LEAVES = 32_000  # about: the leaves of all trees that grow at once


class Point(NamedTuple):
    """A point of the learning curve: the time and the number of trees so far, and shares of the rows that queries read.

    `best` is the share in the best tree; `mean` is the mean share in the new trees.
    """

    seconds: float
    trees: int
    best: float
    mean: float

    def message(self) -> str:
        rate = self.trees / self.seconds
        return f"{self.trees:,} trees, {rate:.1f} a second; the best reads {100 * self.best:.2f} %"


class Result(NamedTuple):
    """The learned layout, and the learning curve."""

    layout: TreeLayout
    curve: tuple[Point, ...]


@dataclass(frozen=True)
class Woodblock:
    """A learner of a tree of cuts, by trial and error: a network grows trees and learns from their rewards.

    Learning ends after `budget_seconds`, after `max_trees`, or when the best tree reads at most the share `target` of
    the sample, whichever is first. The same seed and number of trees give the same tree.

    `reward`: the share of the rows that queries skip, as in the paper, or the logarithm of the share that they read. If
    queries skip nearly all, two trees differ by 0.1 % of the rows skipped, and yet one may read half as much.

    `at_once`: the number of trees that grow together between two lessons; by default 32, fewer if they are large.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    budget_seconds: float | None = 300.0
    max_trees: int | None = None
    target: float | None = None
    reward: Reward = "skipped"
    at_once: int | None = None

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
            while not (search.curve and self._is_enough(search)):
                search.round()
        except KeyboardInterrupt:
            if not (search.curve or search.best):
                raise
            search.progress.report("interrupted: the result is the best tree so far")
        return Result(tree_of(problem, search.best), tuple(search.curve))

    def _check(self) -> None:
        if self.reward not in get_args(Reward):
            raise LayoutError(f"woodblock's reward must be {' or '.join(get_args(Reward))}, not {self.reward!r}")
        for name in ("max_trees", "at_once"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise LayoutError(f"woodblock's {name} must be a whole number from 1 on, not {value!r}")
        for name in ("budget_seconds", "target"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not 0 <= value < np.inf):
                raise LayoutError(f"woodblock's {name} must be a number from 0 on, not {value!r}")

    def _is_enough(self, search: _Search) -> bool:
        """True if learning may end."""
        return (
            (self.budget_seconds is not None and search.progress.seconds >= self.budget_seconds)
            or (self.max_trees is not None and search.trees >= self.max_trees)
            or (self.target is not None and search.read(search.saved) <= self.target)
        )


class _Search:
    """The state of learning: the agent, the best tree so far with the rows x weight it saves, and the curve."""

    def __init__(self, settings: Woodblock, problem: Problem) -> None:
        self.progress = Progress("woodblock")
        self.by_log = settings.reward == "log"
        least = problem.sample_block_rows
        self.forest = Forest.of(problem, least)
        self.at_once = settings.at_once or max(4, min(32, MAX_LEAVES * least // max(1, self.forest.rows)))
        random = np.random.default_rng(problem.seed)
        self.agent = Agent(self.forest.pieces.width, len(problem.cuts), random)
        self.trees = 0
        self.curve: list[Point] = []
        self.best: list[list[int]] = []
        counts, rows = self.forest.counts[None], self.forest.rows
        skipped = problem.clauses.skipped(counts > 0, counts < rows)
        self.saved = float(skipped[0]) * rows  # without any cut

    def read(self, saved: float) -> float:
        """Return the share of the sample's rows that queries read in a tree that saves them `saved` rows x weight."""
        return float(1 - saved / (self.forest.weight * self.forest.rows))

    def round(self) -> None:
        """Grow trees, learn from them, and add a point to the learning curve."""
        grown = self.forest.grown(self.agent.policy(), self.at_once)
        self.trees += self.at_once
        best = int(grown.total.argmax())
        if grown.total[best] > self.saved:
            self.best, self.saved = grown.nodes(best), float(grown.total[best])
        self.agent.learn(grown.with_log_reward() if self.by_log else grown)
        mean = float(grown.total.mean())
        self.curve.append(Point(self.progress.seconds, self.trees, self.read(self.saved), self.read(mean)))
        self.progress.report_sometimes(self.curve[-1].message)
