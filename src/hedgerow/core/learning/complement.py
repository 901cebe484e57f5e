"""Learn a layout for the queries that the existing layouts serve badly; a query reads the copy that serves it best.

    existing read a .1   b .9   c .8   d .2   e .7     of the table's rows
    learn for            b      c             e        queries that could gain
    new one reads a .9   b .1   c .1   d .1   e .8
    learn for            b      c      d               queries that the new one serves better; and so on

Only the queries change from round to round, so any learner works. A round is judged by the sum of each query's minimum
over all layouts, and the best round is kept. (Yang et al., SIGMOD 2020, 6.3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.virtual_blocks import virtual_index

Shares = Floats  # of the table's rows, one for each query
MAX_ROUNDS = 4  # of learning, from each of the two first choices of queries
_LEAST_GAIN = 1e-9  # of a query, in shares of the table: less is rounding


@dataclass(frozen=True)
class Beside:
    """A new layout. `given` and `together` are the mean shares of rows that queries read without it and with it."""

    layout: Layout
    given: float
    together: float


def fit_beside(learner: Learner, problem: Problem, given: Sequence[float]) -> Beside:
    """Learn a layout beside existing ones, under which query i reads the share `given[i]` of the table's rows."""
    existing = np.asarray(given, float)
    weights = np.asarray(problem.weights, float)
    best: tuple[float, Layout] | None = None
    tried: set[bytes] = set()
    for start in _first_choices(problem, existing, weights):
        chosen, last = start, np.inf
        for _ in range(MAX_ROUNDS):
            if chosen.tobytes() in tried or not chosen.any():
                break
            tried.add(chosen.tobytes())
            layout = learner.fit(_only(problem, chosen))
            reads = rows_read(layout, problem)
            total = float(weights @ np.minimum(existing, reads))
            if best is None or total < best[0]:
                best = total, layout
            if total >= last:
                break
            chosen, last = reads < existing - _LEAST_GAIN, total
    whole = weights.sum() or 1.0
    before = float(weights @ existing)
    if best is None:  # nothing can be gained
        best = before, learner.fit(problem)
    return Beside(best[1], before / whole, min(before, best[0]) / whole)


def rows_read(layout: Layout, problem: Problem) -> Shares:
    """The share of rows that each query of the problem would read under a layout, estimated on the sample."""
    index = virtual_index(layout, problem.sample)
    rows = index.blocks.rows
    read = [rows[index.to_open(p)].sum() for p in problem.predicates]
    return np.array(read, float).reshape(-1) / max(1, len(problem.sample))


def _first_choices(problem: Problem, given: Shares, weights: Shares) -> Iterable[Bools]:
    """Queries to begin with: all that could gain; and the fewest that together have half of the possible gain."""
    least = np.array([problem.sample.selectivity(p) or 0.0 for p in problem.predicates]).reshape(-1)
    gain = weights * np.maximum(0, given - least)
    yield gain > _LEAST_GAIN
    order = np.argsort(-gain, kind="stable")
    count = int(np.searchsorted(np.cumsum(gain[order]), gain.sum() / 2)) + 1
    largest = np.zeros(len(gain), bool)
    largest[order[:count]] = True
    yield largest & (gain > _LEAST_GAIN)


def _only(problem: Problem, chosen: Bools) -> Problem:
    """The problem of the chosen queries; its trial would be judged on all."""
    places = np.flatnonzero(chosen).tolist()
    return replace(
        problem,
        predicates=tuple(problem.predicates[i] for i in places),
        weights=tuple(problem.weights[i] for i in places),
        trial=None,
    )
