"""Learn a layout for the queries that others serve badly: a table in several copies serves each query by the best.

    given reads   a .1   b .9   c .8   d .2   e .7     of the table's rows
    learn for            b      c             e        those that could gain
    it reads      a .9   b .1   c .1   d .1   e .8
    learn for            b      c      d               those that it serves better; and so on

The queries are all that changes from round to round, so any learner will do. What counts is the sum of the minima:
it never exceeds what the given layouts read, and the best round of all is kept. (Yang et al., SIGMOD 2020, 6.3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.score import virtual_index
from hedgerow.core.pruning.block_stats import Bools

Shares = npt.NDArray[np.float64]  # of the table's rows, one for each query
ROUNDS = 4
_NOTHING = 1e-9


@dataclass(frozen=True)
class Beside:
    """A layout beside given ones; `given` and `together` are shares of rows read, weighted means over all queries."""

    layout: Layout
    given: float
    together: float


def fit_beside(learner: Learner, problem: Problem, given: Sequence[float]) -> Beside:
    """`given[i]` is what query i reads, as a share of the table's rows, before there is the new layout."""
    known = np.asarray(given, float)
    weights = np.asarray(problem.weights, float)
    best: tuple[float, Layout] | None = None
    tried: set[bytes] = set()
    for start in _starts(problem, known, weights):
        chosen, last = start, np.inf
        for _ in range(ROUNDS):
            if chosen.tobytes() in tried or not chosen.any():
                break
            tried.add(chosen.tobytes())
            layout = learner.fit(_only(problem, chosen))
            reads = rows_read(layout, problem)
            total = float(weights @ np.minimum(known, reads))
            if best is None or total < best[0]:
                best = total, layout
            if total >= last:
                break
            chosen, last = reads < known - _NOTHING, total
    whole = weights.sum() or 1.0
    before = float(weights @ known)
    if best is None:  # nothing can be gained
        best = before, learner.fit(problem)
    return Beside(best[1], before / whole, min(before, best[0]) / whole)


def rows_read(layout: Layout, problem: Problem) -> Shares:
    """What each query of the problem would read under a layout, by the sample."""
    index = virtual_index(layout, problem.sample)
    rows = index.blocks.rows
    read = [rows[index.to_open(p)].sum() for p in problem.predicates]
    return np.array(read, float).reshape(-1) / max(1, len(problem.sample))


def _starts(problem: Problem, given: Shares, weights: Shares) -> Iterable[Bools]:
    """All that could gain; and the few who could gain most, half of all there is to be gained."""
    least = np.array([problem.sample.selectivity(p) or 0.0 for p in problem.predicates]).reshape(-1)
    gain = weights * np.maximum(0, given - least)
    yield gain > _NOTHING
    order = np.argsort(-gain, kind="stable")
    enough = int(np.searchsorted(np.cumsum(gain[order]), gain.sum() / 2)) + 1
    some = np.zeros(len(gain), bool)
    some[order[:enough]] = True
    yield some & (gain > _NOTHING)


def _only(problem: Problem, chosen: Bools) -> Problem:
    places = np.flatnonzero(chosen).tolist()
    return replace(
        problem,
        predicates=tuple(problem.predicates[i] for i in places),
        weights=tuple(problem.weights[i] for i in places),
    )
