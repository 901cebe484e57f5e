"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): split a node by the cut that lets most rows be skipped.

By default it departs from the paper: cuts are weighed by the entropy of the split, leaves are small cells, and cells
are joined into blocks by what all rows say of them. `QdTree("skip", cells=1)` is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np
import numpy.typing as npt

from hedgerow.core.clauses import Listed
from hedgerow.core.errors import LayoutError
from hedgerow.core.kernels import best_cut, count, open_queries, pack, part, sides
from hedgerow.core.merge import merge
from hedgerow.core.overlap import OverlapLayout, overlapped
from hedgerow.core.problem import Problem
from hedgerow.core.stats import Bools, Ints
from hedgerow.core.tree import Node, TreeLayout

SMALL = 0.5  # of a block: the most rows of a leaf that is kept in several; of larger ones the copies cost too much
Criterion = Choice["skip", "gain_ratio"]


@dataclass(frozen=True)
class QdTree:
    """`criterion`: how much a cut lets be skipped ("skip", the paper's), or that for each bit of the split's entropy
    ("gain_ratio", with `eps` added to the entropy so that tiny slices are not favoured: by default the more, the less
    of the problem was really asked).

    `cells`: how many leaves a block may be made of. With 1 a leaf is a block, as in the paper; else leaves are that
    much smaller than a block and joined by what the joined blocks cost.

    `overlap`: one side of a cut may be half a block or less; such leaves are kept in several blocks (6.2). The other
    leaves are blocks then, whatever `cells` says.
    """

    criterion: Criterion = "gain_ratio"
    eps: float | None = None
    cells: int = 6
    overlap: bool = False

    def fit(self, problem: Problem) -> TreeLayout | OverlapLayout:
        if self.criterion not in ("skip", "gain_ratio"):
            raise LayoutError(f"a qd-tree's criterion is skip or gain_ratio, not {self.criterion!r}")
        if self.eps is not None and (not isinstance(self.eps, int | float) or not 0 <= self.eps < np.inf):
            raise LayoutError(f"a qd-tree's eps is a number from 0 on, not {self.eps!r}")
        if not isinstance(self.cells, int) or isinstance(self.cells, bool) or self.cells < 1:
            raise LayoutError(f"a block has at least one cell, a whole number, not cells={self.cells!r}")
        if not problem.cuts:
            return TreeLayout((), ())
        if self.overlap:
            return overlapped(self._grown(problem, problem.sample_block_rows), problem)
        tree = self._grown(problem, max(1, problem.sample_block_rows // self.cells))
        if self.cells == 1:
            return tree
        return tree.relabelled(merge(problem.cells(tree), problem.clauses, problem.block_rows).tolist())

    def _grown(self, problem: Problem, least: int) -> TreeLayout:
        """Depth first, left before right."""
        clauses = problem.clauses.lists
        eps = max(0.1, 0.25 - 0.2 * problem.seen) if self.eps is None else self.eps
        eps = eps if self.criterion == "gain_ratio" else -1.0
        shared = SMALL * least if self.overlap else 0.0
        by_cells = self.cells > 1 and not self.overlap
        nodes: list[list[int]] = []
        leaves = 0
        todo = [(_Open.root(problem), -1, 0)]
        while todo:
            here, parent, side = todo.pop()
            best = -1
            if here.rows >= (least + 1 if self.overlap else 2 * least):
                sizes = count(here.bits)
                known = here.bits, here.rows, sizes, here.cuts, here.some, here.other, here.queries, here.asked
                best = best_cut(*known, clauses, least, shared, eps, False)
                if best < 0 and by_cells:  # nothing gains yet; small cells are worth having all the same
                    best = best_cut(*known, clauses, least, shared, eps, True)
            if best < 0:
                child, leaves = ~leaves, leaves + 1
            else:
                child = len(nodes)
                nodes.append([int(here.cuts[best]), 0, 0])
                left, right = here.divided(best, int(sizes[best]), clauses, not by_cells)
                todo += [(right, child, 2), (left, child, 1)]
            if parent >= 0:
                nodes[parent][side] = child
        used = sorted({n[0] for n in nodes})
        place = {cut: i for i, cut in enumerate(used)}
        found: tuple[Node, ...] = tuple((place[c], a, b) for c, a, b in nodes)
        return TreeLayout(tuple(problem.cuts[c] for c in used), found)


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
