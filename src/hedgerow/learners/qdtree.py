"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): split a node by the cut that lets most rows be skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np
import numpy.typing as npt

from hedgerow.core.clauses import Clauses, Matrix
from hedgerow.core.errors import LayoutError
from hedgerow.core.problem import Problem
from hedgerow.core.tree import Node, TreeLayout

Criterion = Choice["skip", "gain_ratio"]


@dataclass(frozen=True)
class QdTree:
    """`criterion`: how much a cut lets be skipped ("skip", the paper's), or that for each bit of the split's entropy
    ("gain_ratio", with `eps` added to the entropy so that tiny slices are not favoured)."""

    criterion: Criterion = "skip"
    eps: float = 0.05

    def fit(self, problem: Problem) -> TreeLayout:
        if self.criterion not in ("skip", "gain_ratio"):
            raise LayoutError(f"a qd-tree's criterion is skip or gain_ratio, not {self.criterion!r}")
        truth = problem.truth
        if not len(truth):
            return TreeLayout((), ())
        clauses = Clauses.of(problem.cuts, problem.predicates, problem.weights)
        least = problem.sample_block_rows
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
        if n < 2 * least:
            return None
        size = dense.sum(axis=1)
        legal = np.flatnonzero((size >= least) & (n - size >= least))
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
