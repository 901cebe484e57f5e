"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): split a node by the cut that lets most rows be skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np
import numpy.typing as npt

from hedgerow.core.clauses import Clauses, Matrix
from hedgerow.core.errors import LayoutError
from hedgerow.core.merge import merge
from hedgerow.core.overlap import OverlapLayout, overlapped
from hedgerow.core.problem import Problem
from hedgerow.core.tree import Node, TreeLayout

SMALL = 0.5  # of a block: the most rows of a leaf that is kept in several; of larger ones the copies cost too much
Criterion = Choice["skip", "gain_ratio"]


@dataclass(frozen=True)
class QdTree:
    """`criterion`: how much a cut lets be skipped ("skip", the paper's), or that for each bit of the split's entropy
    ("gain_ratio", with `eps` added to the entropy so that tiny slices are not favoured).

    `cells`: how many leaves a block may be made of. With 1 a leaf is a block, as in the paper; else leaves are that
    much smaller than a block and joined by what the joined blocks cost.

    `overlap`: one side of a cut may be half a block or less; such leaves are kept in several blocks (6.2).
    """

    criterion: Criterion = "skip"
    eps: float = 0.05
    cells: int = 1
    overlap: bool = False

    def fit(self, problem: Problem) -> TreeLayout | OverlapLayout:
        if self.criterion not in ("skip", "gain_ratio"):
            raise LayoutError(f"a qd-tree's criterion is skip or gain_ratio, not {self.criterion!r}")
        if self.cells < 1:
            raise LayoutError(f"a block has at least one cell, not cells={self.cells}")
        if self.overlap and self.cells > 1:
            raise LayoutError("a qd-tree with overlap has one cell a block: leave out cells, or overlap")
        if not problem.cuts:
            return TreeLayout((), ())
        if self.overlap:
            return overlapped(self._grown(problem, problem.sample_block_rows), problem)
        tree = self._grown(problem, max(1, problem.sample_block_rows // self.cells))
        if self.cells == 1:
            return tree
        return tree.relabelled(merge(problem.cells(tree), problem.clauses, problem.block_rows).tolist())

    def _grown(self, problem: Problem, least: int) -> TreeLayout:
        truth, clauses = problem.truth, problem.clauses
        dense = truth.astype(np.float32)
        nodes: list[list[int]] = []
        leaves = 0
        todo: list[tuple[npt.NDArray[np.intp], int, int]] = [(np.arange(truth.shape[1]), -1, 0)]
        while todo:
            here, parent, side = todo.pop()
            cut = self._best_cut(dense[:, here], clauses, least)
            if cut is None:
                child, leaves = ~leaves, leaves + 1
            else:
                child = len(nodes)
                nodes.append([cut, 0, 0])
                left = truth[cut][here]
                todo += [(here[~left], child, 2), (here[left], child, 1)]
            if parent >= 0:
                nodes[parent][side] = child
        used = sorted({n[0] for n in nodes})
        place = {cut: i for i, cut in enumerate(used)}
        found: tuple[Node, ...] = tuple((place[c], a, b) for c, a, b in nodes)
        return TreeLayout(tuple(problem.cuts[c] for c in used), found)

    def _best_cut(self, dense: Matrix, clauses: Clauses, least: int) -> int | None:
        """The cut with the greatest gain in skipped rows whose both sides are large enough."""
        n = dense.shape[1]
        if n < (least + 1 if self.overlap else 2 * least):
            return None
        size = dense.sum(axis=1)
        small = np.minimum(size, n - size)
        shared = (small > 0) & (small <= SMALL * least) & self.overlap
        legal = np.flatnonzero((n - small >= least) & ((small >= least) | shared))
        if not len(legal):
            return None
        # Left of cut i, cut j is sometimes TRUE if some row has both; right of it, if not all of its rows went left.
        both = dense[legal] @ dense.T
        left = size[legal]
        right = n - left
        now = float(clauses.skipped((size > 0)[None], (size < n)[None])[0])
        of_left = clauses.skipped(both > 0, both < left[:, None])
        rest = size - both
        of_right = clauses.skipped(rest > 0, rest < right[:, None])
        gain = left * of_left + right * of_right - n * now
        if self.criterion == "gain_ratio":
            share = left / n
            gain = gain / (_entropy(share) + self.eps)
        best = int(np.argmax(gain))
        return int(legal[best]) if gain[best] > 1e-6 * n else None


def _entropy(share: Matrix) -> Matrix:
    found: Matrix = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return found
