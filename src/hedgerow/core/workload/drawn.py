"""drawn_by_weight: draws some of many queries, so that each kind keeps about its share of the weight."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any


def drawn_by_weight(weights: Sequence[float], kind: Callable[[int], Any], limit: int) -> dict[int, float]:
    """Return the places of at most `limit` queries, in their order, with their weights.

    The heaviest queries keep their weight. Others are drawn at even steps of their total weight, kind after kind; each
    gets the weight of the steps that it was drawn for.

    >>> drawn_by_weight([1, 1, 8, 1, 1], lambda place: place % 2, 3)
    {0: 2.0, 1: 2.0, 2: 8}
    """
    if len(weights) <= limit:
        return dict(enumerate(weights))
    by_weight = sorted(range(len(weights)), key=lambda i: -weights[i])
    heavy, light_weight = 0, sum(weights)
    while heavy < limit and weights[by_weight[heavy]] * (limit - heavy) >= light_weight:
        light_weight -= weights[by_weight[heavy]]
        heavy += 1
    drawn = {i: weights[i] for i in by_weight[:heavy]}
    if heavy < limit:
        # In the order of the log, even steps could miss a kind: dashboards ask the same questions in turn.
        light = sorted(by_weight[heavy:], key=lambda i: (kind(i), i))
        up_to = list(accumulate(weights[i] for i in light))
        step = up_to[-1] / (limit - heavy)
        times = Counter(bisect_left(up_to, (i + 0.5) * step) for i in range(limit - heavy))
        drawn |= {light[i]: n * step for i, n in times.items()}
    return {i: drawn[i] for i in sorted(drawn)}
