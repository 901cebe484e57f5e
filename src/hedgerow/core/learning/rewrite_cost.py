"""How long a rewrite takes: a fixed part, a part for each byte, and one for each byte and described item.

Fitted to small runs that were timed (thesis, 5.1), and corrected by the real rewrites since; or to these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_LATEST = 3  # so many of the last real rewrites correct what small ones say


@dataclass(frozen=True, slots=True)
class Run:
    """A timed rewrite of so many bytes; `items`: the conditions and expressions that the index describes."""

    size: float
    items: int
    seconds: float
    is_real: bool = False


@dataclass(frozen=True, slots=True)
class RewriteCost:
    """Seconds of a rewrite."""

    fixed: float
    byte: float
    item: float = 0.0  # for each byte

    def seconds(self, size: float, items: int) -> float:
        return self.fixed + size * self.rate(items)

    def rate(self, items: int) -> float:
        """Seconds for each byte."""
        return self.byte + items * self.item

    def __str__(self) -> str:
        each = f"{self.byte * (1 << 30):,.1f} s for each GB"
        return f"{self.fixed:,.1f} s, {each}, and {self.item * 10 * (1 << 30):,.2f} s more for each ten conditions"


def cost_of(runs: Sequence[Run]) -> RewriteCost | None:
    """The model of the small runs, or else of the latest real ones, times what these took more or less; None without
    any run.

    >>> small = [Run(1e6, 0, 3.0), Run(1e7, 0, 12.0), Run(1e6, 10, 4.0), Run(1e7, 10, 22.0)]
    >>> [round(cost_of(runs).seconds(1e8, 5), 3) for runs in (small, [*small, Run(1e8, 5, 304.0, True)])]
    [152.0, 304.0]
    """
    timed = [run for run in runs if 0 < run.seconds < np.inf and 1 <= run.size < np.inf]
    small, real = [r for r in timed if not r.is_real], [r for r in timed if r.is_real][-_LATEST:]
    if not timed:
        return None
    cost = _fitted(small) if small else _of_few(real)
    told = [(run.seconds, cost.seconds(run.size, run.items)) for run in real]
    logs = [np.log(seconds) - np.log(estimate) for seconds, estimate in told if estimate > 0]
    factor = float(np.exp(np.mean(logs))) if logs else 1.0
    return RewriteCost(factor * cost.fixed, factor * cost.byte, factor * cost.item)


def _of_few(runs: Sequence[Run]) -> RewriteCost:
    """A fixed part and one for each byte. The fixed part is at most half of the shortest run: of a few runs of similar
    size one cannot tell which of the two took the time, and a larger rewrite should not be taken for cheap."""
    sizes, seconds = np.array([[run.size, run.seconds] for run in runs]).T
    fixed = float(np.linalg.lstsq(np.array([1 / seconds, sizes / seconds]).T, np.ones(len(runs)), rcond=None)[0][0])
    fixed = 0.0 if sizes.max() < 2 * sizes.min() else min(max(0.0, fixed), seconds.min() / 2)
    return RewriteCost(fixed, float(np.mean((seconds - fixed) / sizes)))


def _fitted(runs: Sequence[Run]) -> RewriteCost:
    """The model nearest to the runs, by relative error, with no part below zero."""
    parts = np.array([[1.0, run.size, run.size * run.items] for run in runs])
    scale = np.maximum(parts.max(axis=0), 1.0)  # the three parts are of very different sizes
    relative = parts / scale / np.array([run.seconds for run in runs])[:, None]
    best, least = np.zeros(3), np.inf
    for used in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):  # the others are zero
        found = np.zeros(3)
        found[used] = np.linalg.lstsq(relative[:, used], np.ones(len(runs)), rcond=None)[0]
        error = float(((relative @ found - 1) ** 2).sum())
        if (found >= 0).all() and error < least:
            best, least = found, error
    fixed, byte, item = map(float, best / scale)
    return RewriteCost(fixed, byte, item)
