"""The learning curve of Woodblock as text, as in Fig. 8 of the qd-tree paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.learners.woodblock.woodblock import Point


def few(curve: Sequence[Point], most: int = 60) -> list[Point]:
    """Return at most `most` points at about equal distances on a logarithmic axis, with the first and the last."""
    if len(curve) <= most:
        return list(curve)
    return [curve[i] for i in sorted(set(np.geomspace(1, len(curve), most).astype(int) - 1))]


def drawn(curve: Sequence[Point], width: int = 50) -> list[str]:
    """Draw the curve as text: # is the share read by the best tree, - the mean share read by new trees."""
    rows = []
    for point in few(curve, 16):
        best, mean = (min(width, round(width * share)) for share in (point.best, point.mean))
        bar = "#" * best + "-" * max(0, mean - best)
        rows.append(f"{point.seconds:7.1f} s {point.trees:8,.0f} trees  {100 * point.best:5.2f} %  {bar}")
    return rows
