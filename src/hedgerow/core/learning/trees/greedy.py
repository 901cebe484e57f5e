"""Grow a tree of cuts greedily: every node takes its best cut; depth first, left before right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args
from typing import Literal as Choice

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.tree import Node, TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import best_cut, count, open_queries, pack, part, shortened, sides
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.workload.query_clauses import ClauseArrays

MAX_WORDS_ON_ONE_CORE = 1_000_000  # that a search for the best cut looks at; a longer search uses all cores
CLEARLY_LESS = 0.01  # relative: a smaller difference on queries held out may be chance
NO_CUT = NO_PARENT = -1
Criterion = Choice["skip", "gain_ratio"]


def checked_eps(problem: Problem, criterion: Criterion, eps: float | None) -> float:
    """The number that is added to a split's entropy, -1 for none; by default larger if more queries are synthetic."""
    if criterion not in get_args(Criterion):
        raise LayoutError(f"criterion must be {' or '.join(get_args(Criterion))}, not {criterion!r}")
    if eps is not None and (not isinstance(eps, int | float) or not 0 <= eps < np.inf):
        raise LayoutError(f"eps must be a number of at least 0, not {eps!r}")
    if criterion == "skip":
        return -1.0
    return max(0.1, 0.25 - 0.2 * problem.observed_share) if eps is None else eps


def checked_cells(problem: Problem, cells: int | None) -> int:
    """The number of leaves that make up a block; by default more if fewer of the queries are synthetic."""
    if cells is None:
        return round(6 + 4 * problem.observed_share)
    if not isinstance(cells, int) or isinstance(cells, bool) or cells < 1:
        raise LayoutError(f"cells must be a whole number of at least 1, not {cells!r}")
    return cells


def cells_by_trial(problem: Problem, fit: Callable[[Problem, int], Layout]) -> int | None:
    """1 if queries held out read clearly less in a layout whose blocks are single leaves; else None, the default.

    Blocks that are joined from small leaves fit the queries learned from more closely, sometimes at the cost of others.
    """
    trial = problem.trial() if problem.trial else None
    if trial is None:
        return None
    single, joined = (trial.reads(fit(trial.problem, n)) for n in (1, checked_cells(trial.problem, None)))
    return 1 if single < (1 - CLEARLY_LESS) * joined else None


def greedy(problem: Problem, least: int, eps: float, by_cells: bool, shared: float = 0.0) -> TreeLayout:
    """Grow a tree in which both sides of each cut have `least` sample rows, or one of them at most `shared`.

    With eps >= 0 a gain is divided by eps plus the split's entropy. With `by_cells` the leaves will be joined later, so
    a node is cut even if no query gains yet.
    """
    clauses = problem.clauses.arrays
    nodes: list[list[int]] = []
    leaves = 0
    todo = [(OpenNode.root(problem), NO_PARENT, 0)]
    while todo:
        here, parent, side = todo.pop()
        best = NO_CUT
        if here.rows >= (least + 1 if shared else 2 * least):
            sizes = count(here.bits)
            node = here.bits, here.rows, sizes, here.cuts, here.some, here.other
            short = shortened(here.queries, clauses, here.some, here.other)
            every = np.arange(len(here.queries))
            best = _best(node, every, here.asked, short, least, shared, eps, False)
            if best == NO_CUT and by_cells:
                best = _best(node, here.queries, here.asked, clauses, least, shared, eps, True)
        if best == NO_CUT:
            child, leaves = ~leaves, leaves + 1
        else:
            child = len(nodes)
            nodes.append([int(here.cuts[best]), 0, 0])
            left, right = here.divided(best, int(sizes[best]), clauses, not by_cells)
            todo += [(right, child, 2), (left, child, 1)]
        if parent != NO_PARENT:
            nodes[parent][side] = child
    return tree_of(problem, nodes)


def _best(node: tuple[Any, ...], *options: Any) -> int:
    """The first of the cuts with the largest gain; a long search runs on all cores."""
    bits = node[0]

    def best_of(part: slice) -> tuple[int, float]:
        given: Any = (*node, *options, part.start, part.stop)
        cut_and_gain: tuple[int, float] = best_cut(*given)
        return cut_and_gain

    is_short = bits.size * len(bits) < MAX_WORDS_ON_ONE_CORE
    pairs = [best_of(slice(0, len(bits)))] if is_short else parallel_map_slices(best_of, len(bits))
    return max(pairs, key=lambda pair: pair[1])[0]


def tree_of(problem: Problem, nodes: Sequence[Sequence[int]]) -> TreeLayout:
    """The layout of nodes (cut, left, right), in which a cut is its number in the problem."""
    used = sorted({n[0] for n in nodes})
    place = {cut: i for i, cut in enumerate(used)}
    renumbered: tuple[Node, ...] = tuple((place[c], a, b) for c, a, b in nodes)
    return TreeLayout(tuple(problem.cuts[c] for c in used), renumbered)


@dataclass(frozen=True)
class OpenNode:
    """A node that may still be cut: `bits` are the packed outcomes of the `cuts` that divide its rows; `queries` might
    skip a part of the rows; `some` and `other`, for all cuts: TRUE, not TRUE on some row."""

    bits: npt.NDArray[np.uint64]
    rows: int
    cuts: Ints
    some: Bools
    other: Bools
    queries: Ints
    asked: Bools  # whether each cut occurs in one of these queries
    of_none: Bools  # whether it occurred in none of them at the root, as where values begin: such a cut always stays

    @staticmethod
    def root(problem: Problem) -> OpenNode:
        truth = problem.truth
        some: Bools = np.logical_or.reduce(truth, axis=1)
        other: Bools = np.logical_or.reduce(~truth, axis=1)
        cuts = np.flatnonzero(some & other)
        every = np.arange(len(problem.clauses.needs))
        queries, asked = open_queries(every, problem.clauses.arrays, some, other)
        return OpenNode(pack(truth[cuts]), truth.shape[1], cuts, some, other, queries, asked, ~asked)

    def divided(self, best: int, left: int, clauses: ClauseArrays, every: bool) -> tuple[OpenNode, OpenNode]:
        """The two sides of a cut; with `every` they also keep the cuts of queries that are not open any more."""
        facts = self.some.copy(), self.other.copy(), self.some.copy(), self.other.copy()
        sides(self.bits, self.rows, best, self.cuts, np.ones(len(self.some), bool), *facts)

        def side(is_left: bool, rows: int, some: Bools, other: Bools) -> OpenNode:
            queries, asked = open_queries(self.queries, clauses, some, other)
            kept = np.flatnonzero((some & other & (asked | self.of_none | every))[self.cuts])
            bits = part(self.bits, self.rows, best, is_left, kept)
            return OpenNode(bits, rows, self.cuts[kept], some, other, queries, asked, self.of_none)

        return side(True, left, *facts[:2]), side(False, self.rows - left, *facts[2:])
