"""Learn the layouts of several full copies of a table in turns; a query reads the copy that serves it best.

    first     learned for all queries
    second    learned for what the first serves badly      `complement`
    first     learned again beside the second
    second    learned again beside the new first, and so on, as long as queries read clearly less

A turn keeps a layout unless the new one is better, so the cost never rises. (Yang et al., SIGMOD 2020, 6.3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.complement import Shares, fit_complement, rows_read
from hedgerow.core.learning.problem import Learner, Problem

MAX_TURNS = 3  # how often each layout is learned again
_CLEARLY_LESS = 0.99  # times the rows read before the turn; a smaller gain is not worth another turn


@dataclass(frozen=True)
class Replicas:
    """The layouts of full copies. `alone` and `together`: the mean shares of rows that queries read.

    `alone` is the share in the layout that is learned for a single copy, `together` that in the best copy for each
    query.
    """

    layouts: tuple[Layout, ...]
    alone: float
    together: float


def fit_replicas(learner: Learner, problem: Problem, copies: int) -> Replicas:
    """Learn the layouts of so many full copies of the table."""
    layouts = [learner.fit(problem)]
    reads = [rows_read(layouts[0], problem)]
    weights = np.asarray(problem.weights, float) / (sum(problem.weights) or 1.0)
    alone = together = float(weights @ reads[0])
    while len(layouts) < copies:
        fitted = fit_complement(learner, problem, _best(reads).tolist())
        layouts.append(fitted.layout)
        reads.append(rows_read(fitted.layout, problem))
        together = fitted.after
    for _ in range(MAX_TURNS if copies > 1 else 0):
        before = together
        for i in range(copies):
            fitted = fit_complement(learner, problem, _best(reads[:i] + reads[i + 1 :]).tolist())
            if fitted.after < together:
                layouts[i], reads[i], together = fitted.layout, rows_read(fitted.layout, problem), fitted.after
        if together > _CLEARLY_LESS * before:
            break
    return Replicas(tuple(layouts), alone, together)


def _best(reads: list[Shares]) -> Shares:
    """Return the share that each query reads in the copy that serves it best."""
    best: Shares = np.minimum.reduce(reads)
    return best
