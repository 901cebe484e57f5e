"""Grow a tree of cuts greedily: at every node the cut that is worth most there, depth first, left before right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.core.layouts.tree import Node, TreeLayout
from hedgerow.core.learning.cells.merge import merge
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import best_cut, count, open_queries, pack, part, sides
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.pruning.block_stats import Bools, Ints
from hedgerow.core.workload.query_clauses import Listed

MUCH = 1_000_000  # words that a search for the best cut may look at


def eps_of(problem: Problem) -> float:
    """What is added to a split's entropy by default: the more, the less of the problem was really asked."""
    return max(0.1, 0.25 - 0.2 * problem.seen)


def cells_of(problem: Problem) -> int:
    """How many leaves a block may be made of by default: more where all was really asked, for those are few queries."""
    return 10 if problem.seen == 1 else 6


def greedy(problem: Problem, least: int, eps: float, by_cells: bool, shared: float = 0.0) -> TreeLayout:
    """Both sides of a cut have `least` sample rows, or one of them at most `shared`.

    With eps >= 0 a gain counts for each bit of the split's entropy. `by_cells`: leaves will be joined, so small ones
    are worth having even where no query gains yet.
    """
    clauses = problem.clauses.lists
    nodes: list[list[int]] = []
    leaves = 0
    todo = [(_Open.root(problem), -1, 0)]
    while todo:
        here, parent, side = todo.pop()
        best = -1
        if here.rows >= (least + 1 if shared else 2 * least):
            sizes = count(here.bits)
            known = here.bits, here.rows, sizes, here.cuts, here.some, here.other, here.queries, here.asked
            best = _best(known, clauses, least, shared, eps, False)
            if best < 0 and by_cells:  # nothing gains yet
                best = _best(known, clauses, least, shared, eps, True)
        if best < 0:
            child, leaves = ~leaves, leaves + 1
        else:
            child = len(nodes)
            nodes.append([int(here.cuts[best]), 0, 0])
            left, right = here.divided(best, int(sizes[best]), clauses, not by_cells)
            todo += [(right, child, 2), (left, child, 1)]
        if parent >= 0:
            nodes[parent][side] = child
    return tree_of(problem, nodes)


def _best(known: tuple[Any, ...], *how: Any) -> int:
    """The cut that gains most, of equal ones the first; where there is much to look at, on all cores."""
    bits = known[0]

    def of(own: slice) -> tuple[int, float]:
        given: Any = (*known, *how, own.start, own.stop)
        found: tuple[int, float] = best_cut(*given)
        return found

    found = [of(slice(0, len(bits)))] if bits.size * len(bits) < MUCH else parallel_map_slices(of, len(bits))
    return max(found, key=lambda pair: pair[1])[0]


def tree_of(problem: Problem, nodes: Sequence[Sequence[int]]) -> TreeLayout:
    """The layout of nodes (cut, left, right) that number the problem's cuts."""
    used = sorted({n[0] for n in nodes})
    place = {cut: i for i, cut in enumerate(used)}
    found: tuple[Node, ...] = tuple((place[c], a, b) for c, a, b in nodes)
    return TreeLayout(tuple(problem.cuts[c] for c in used), found)


def joined(problem: Problem, tree: TreeLayout) -> TreeLayout:
    """The tree with its leaves, small cells, joined into blocks."""
    return tree.relabelled(merge(problem.cells(tree), problem.clauses, problem.block_rows).tolist())


@dataclass(frozen=True)
class _Open:
    """What is still open at a node: `bits` are the truth of the cuts with both outcomes on its rows, `queries` those
    that some of its rows might be spared. `some` and `other` are of all cuts: sometimes TRUE here, sometimes not."""

    bits: npt.NDArray[np.uint64]
    rows: int
    cuts: Ints
    some: Bools
    other: Bools
    queries: Ints
    asked: Bools  # which cuts these ask for

    @staticmethod
    def root(problem: Problem) -> _Open:
        truth = problem.truth
        some: Bools = np.logical_or.reduce(truth, axis=1)
        other: Bools = np.logical_or.reduce(~truth, axis=1)
        cuts = np.flatnonzero(some & other)
        every = np.arange(len(problem.clauses.needs))
        queries, asked = open_queries(every, problem.clauses.lists, some, other)
        return _Open(pack(truth[cuts]), truth.shape[1], cuts, some, other, queries, asked)

    def divided(self, best: int, left: int, clauses: Listed, every: bool) -> tuple[_Open, _Open]:
        """The two sides of a cut; with `every` they offer cuts too that no open query asks for."""
        known = self.some.copy(), self.other.copy(), self.some.copy(), self.other.copy()
        sides(self.bits, self.rows, best, self.cuts, np.ones(len(self.some), bool), *known)

        def side(is_left: bool, rows: int, some: Bools, other: Bools) -> _Open:
            queries, asked = open_queries(self.queries, clauses, some, other)
            kept = np.flatnonzero(some[self.cuts] & other[self.cuts] & (asked[self.cuts] | every))
            bits = part(self.bits, self.rows, best, is_left, kept)
            return _Open(bits, rows, self.cuts[kept], some, other, queries, asked)

        return side(True, left, *known[:2]), side(False, self.rows - left, *known[2:])
