"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): split a node by the cut that lets most rows be skipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from hedgerow.core.expr import And, Const, Not, Or, Predicate, text
from hedgerow.core.problem import Problem
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Bools
from hedgerow.core.tree import Node, TreeLayout

Counts = npt.NDArray[np.float32]


@dataclass(frozen=True)
class QdTree:
    """Exactly the paper's Algorithm 1; it has no parameters of its own yet."""

    def fit(self, problem: Problem) -> TreeLayout:
        truth = problem.truth
        if not len(truth):
            return TreeLayout((), ())
        skips = _Skips(problem)
        least = problem.sample_block_rows
        dense = truth.astype(np.float32)
        nodes: list[list[int]] = []
        leaves = 0
        todo: list[tuple[npt.NDArray[np.intp], int, int]] = [(np.arange(truth.shape[1]), -1, 0)]
        while todo:
            here, parent, side = todo.pop()
            cut = _best_cut(dense[:, here], skips, least)
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


def _best_cut(dense: Counts, skips: _Skips, least: int) -> int | None:
    """The cut with the greatest gain in skipped rows whose both sides are large enough."""
    n = dense.shape[1]
    if n < 2 * least:
        return None
    both = dense @ dense.T  # rows on which cut i and cut j are TRUE
    left = np.diag(both)
    right = n - left
    legal = (left >= least) & (right >= least)
    if not legal.any():
        return None
    # On the left of cut i, atom j is sometimes TRUE if some row has both; on the right, if not all its rows went left.
    now = skips.weight((left > 0)[None, :], (left < n)[None, :])[0]
    of_left = skips.weight(both[legal] > 0, both[legal] < left[legal][:, None])
    rest = left[None, :] - both[legal]
    of_right = skips.weight(rest > 0, rest < right[legal][:, None])
    gain = left[legal] * of_left + right[legal] * of_right - n * now
    best = int(np.argmax(gain))
    return int(np.flatnonzero(legal)[best]) if gain[best] > 1e-6 * n else None


class _Skips:
    """The weight of queries that nodes can skip, from which cuts are sometimes TRUE and sometimes not in each."""

    def __init__(self, problem: Problem) -> None:
        place = {text(c): i for i, c in enumerate(problem.cuts)}
        weights: dict[Predicate, float] = {}
        for p, w in zip(problem.predicates, problem.weights, strict=True):
            weights[normalise(p)] = weights.get(normalise(p), 0.0) + w
        self.queries = [(p, w) for p, w in weights.items() if p != Const(True)]
        self.place = place

    def weight(self, some: Bools, some_not: Bools) -> Counts:
        """One number a row of `some`: nodes x cuts."""
        total = np.zeros(len(some), np.float32)
        for p, w in self.queries:
            total += np.float32(w) * ~self._may(p, some, some_not)
        return total

    def _may(self, p: Predicate, some: Bools, some_not: Bools) -> Bools:
        match p:
            case And(kids):
                return reduce(np.logical_and, [self._may(k, some, some_not) for k in kids])
            case Or(kids):
                return reduce(np.logical_or, [self._may(k, some, some_not) for k in kids])
            case Not(kid) if text(p) not in self.place and text(kid) in self.place:
                return some_not[:, self.place[text(kid)]]
        at = self.place.get(text(p))
        return np.ones(len(some), bool) if at is None else some[:, at]
