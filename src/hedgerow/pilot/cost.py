"""Estimates the cost of a rewrite: a fixed part, a part for each byte, and one for each byte and described item.

The estimate is fitted to small rewrites that were timed (thesis, 5.1), and corrected by the real rewrites since.
Without small ones it is fitted to the real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.learning.seconds import RewriteCost

_LATEST = 3  # real rewrites that correct the estimate


@dataclass(frozen=True, slots=True)
class Run:
    """A timed rewrite of `size` bytes; `items`: the conditions and expressions that the index describes."""

    size: float
    items: int
    seconds: float

    @property
    def is_usable(self) -> bool:
        """True if a cost can be fitted to the run."""
        return 0 < self.seconds < np.inf and 1 <= self.size < np.inf


def corrected_cost(small: RewriteCost | None, rewrites: Sequence[Run]) -> RewriteCost | None:
    """Return the cost that small rewrites gave, scaled to the latest real ones; or fit it to these. None without both.

    >>> small = RewriteCost(2.0, 1e-6, 1e-7)
    >>> [round(corrected_cost(small, real).seconds(1e8, 5), 3) for real in ([], [Run(1e8, 5, 304.0)])]
    [152.0, 304.0]
    """
    latest = [run for run in rewrites if run.is_usable][-_LATEST:]
    if small is None and not latest:
        return None
    cost = _fitted_to_few(latest) if small is None else small
    estimates = [(run.seconds, cost.seconds(run.size, run.items)) for run in latest]
    logs = [np.log(seconds) - np.log(estimate) for seconds, estimate in estimates if estimate > 0]
    factor = float(np.exp(np.mean(logs))) if logs else 1.0
    return RewriteCost(factor * cost.fixed, factor * cost.byte, factor * cost.item)


def _fitted_to_few(runs: Sequence[Run]) -> RewriteCost:
    """Return a cost of a fixed part and one for each byte.

    A few runs of similar sizes cannot show which of the two took the time. So the fixed part is at most half of the
    shortest run: the cost of a larger rewrite should not be underestimated."""
    sizes, seconds = np.array([[run.size, run.seconds] for run in runs]).T
    fixed = float(np.linalg.lstsq(np.array([1 / seconds, sizes / seconds]).T, np.ones(len(runs)), rcond=None)[0][0])
    fixed = 0.0 if sizes.max() < 2 * sizes.min() else min(max(0.0, fixed), seconds.min() / 2)
    return RewriteCost(fixed, float(np.mean((seconds - fixed) / sizes)))


def fitted_cost(runs: Sequence[Run]) -> RewriteCost | None:
    """Return the cost nearest to the runs, by relative error, with no part below zero; None without a usable run.

    >>> str(fitted_cost([Run(1e6, 0, 3.0), Run(1e7, 0, 12.0), Run(1e6, 10, 4.0), Run(1e7, 10, 22.0)]))
    '2.0 s, 1,073.7 s for each GB, and 1,073.74 s more for each ten conditions'
    """
    usable = [run for run in runs if run.is_usable]
    if not usable:
        return None
    parts = np.array([[1.0, run.size, run.size * run.items] for run in usable])
    scale = np.maximum(parts.max(axis=0), 1.0)  # the three parts are of very different sizes
    relative = parts / scale / np.array([run.seconds for run in usable])[:, None]
    best, least = np.zeros(3), np.inf
    for used in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):  # the others are zero
        cost = np.zeros(3)
        cost[used] = np.linalg.lstsq(relative[:, used], np.ones(len(usable)), rcond=None)[0]
        error = float(((relative @ cost - 1) ** 2).sum())
        if (cost >= 0).all() and error < least:
            best, least = cost, error
    fixed, byte, item = map(float, best / scale)
    return RewriteCost(fixed, byte, item)
