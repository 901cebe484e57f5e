"""How a learner by trial gets better: Fig. 8 of the qd-tree paper as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.learners.woodblock.woodblock import Point


def few(curve: Sequence[Point], most: int = 60) -> list[Point]:
    """Points at about equal distances on a logarithmic axis, the first and the last among them."""
    if len(curve) <= most:
        return list(curve)
    return [curve[i] for i in sorted(set(np.geomspace(1, len(curve), most).astype(int) - 1))]


def drawn(curve: Sequence[Point], width: int = 50) -> list[str]:
    """The curve as text: # is what the best tree reads, - what new trees read on average."""
    rows = []
    for point in few(curve, 16):
        best, mean = (min(width, round(width * share)) for share in (point.best, point.mean))
        bar = "#" * best + "-" * max(0, mean - best)
        rows.append(f"{point.seconds:7.1f} s {point.trees:8,.0f} trees  {100 * point.best:5.2f} %  {bar}")
    return rows
