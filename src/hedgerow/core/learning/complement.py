"""Learn a layout for the queries that the existing layouts serve badly; a query reads the copy that serves it best.

    query                       a    b    c    d    e
    read in existing layouts   .1   .9   .8   .2   .7    share of the table's rows
    learn from                      b    c         e     queries that could gain
    read in the new layout     .9   .1   .1   .1   .8
    learn from                      b    c    d          queries that the new layout serves better; and so on

Only the queries change from round to round, so any learner works. The cost of a round is the sum of each query's
minimum over all layouts, and the cheapest round is kept. (Yang et al., SIGMOD 2020, 6.3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Learner, Problem
from hedgerow.core.learning.virtual_blocks import virtual_index

Shares = Floats  # the share of the table's rows that each query reads
MAX_ROUNDS = 4  # rounds of learning, from each of the two first choices of queries
_LEAST_GAIN = 1e-9  # a smaller gain of a query, as a share of the table's rows, may be rounding


@dataclass(frozen=True)
class Complement:
    """A new layout. `before` and `after` are the mean shares of rows that queries read without it and with it."""

    layout: Layout
    before: float
    after: float


def fit_complement(learner: Learner, problem: Problem, shares: Sequence[float]) -> Complement:
    """Learn a layout beside existing ones, under which query i reads the share `shares[i]` of the table's rows."""
    existing = np.asarray(shares, float)
    weights = np.asarray(problem.weights, float)
    best: tuple[float, Layout] | None = None
    learned_from: set[bytes] = set()
    for start in _first_choices(problem, existing, weights):
        chosen, last = start, np.inf
        for _ in range(MAX_ROUNDS):
            if chosen.tobytes() in learned_from or not chosen.any():
                break
            learned_from.add(chosen.tobytes())
            layout = learner.fit(_only(problem, chosen))
            reads = rows_read(layout, problem)
            total = float(weights @ np.minimum(existing, reads))
            if best is None or total < best[0]:
                best = total, layout
            if total >= last:
                break
            chosen, last = reads < existing - _LEAST_GAIN, total
    total_weight = float(weights.sum()) or 1.0
    before = float(weights @ existing)
    if best is None:  # no query can gain
        best = before, learner.fit(problem)
    return Complement(best[1], before / total_weight, min(before, best[0]) / total_weight)


def rows_read(layout: Layout, problem: Problem) -> Shares:
    """Return the estimated share of rows that each query of the problem would read under a layout."""
    index = virtual_index(layout, problem.sample)
    rows = index.blocks.rows
    read = [rows[index.to_open(p)].sum() for p in problem.predicates]
    return np.array(read, float).reshape(-1) / max(1, len(problem.sample))


def _first_choices(problem: Problem, existing: Shares, weights: Shares) -> Iterable[Bools]:
    """Yield the queries to begin with: all that could gain; then the fewest with half of the possible gain."""
    bound = np.array([problem.sample.selectivity(p) or 0.0 for p in problem.predicates]).reshape(-1)
    gain = weights * np.maximum(0, existing - bound)
    yield gain > _LEAST_GAIN
    order = np.argsort(-gain, kind="stable")
    count = int(np.searchsorted(np.cumsum(gain[order]), gain.sum() / 2)) + 1
    largest = np.zeros(len(gain), bool)
    largest[order[:count]] = True
    yield largest & (gain > _LEAST_GAIN)


def _only(problem: Problem, chosen: Bools) -> Problem:
    """Return the problem with the chosen queries; without its trial, which is about all queries."""
    places = np.flatnonzero(chosen).tolist()
    return replace(
        problem,
        predicates=tuple(problem.predicates[i] for i in places),
        weights=tuple(problem.weights[i] for i in places),
        trial=None,
    )
