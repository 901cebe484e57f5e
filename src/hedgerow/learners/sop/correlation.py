"""Of features that say the same, one is enough (thesis, 4.2.2 and 4.3).

terms         rows in the order of one are in the order of the other, or in the opposite order: year, items sold
conditions    where one holds, the other holds as well, or does not hold: country = 'FR', currency = 'EUR'

A graph has an edge between any two such features. Features are chosen from it one by one; each chosen one speaks for
its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import LayoutError

Policy = Literal["frequency", "degree", "both"]
Graph = list[set[int]]  # of each feature its neighbours


def ascending_pairs(values: Ints) -> int:
    """The number of pairs in which the later value is larger; as a share of all pairs, the thesis' sort index.

    >>> ascending_pairs(np.array([1, 3, 5, 2, 4])) / 10
    0.7

    Two values first differ in one bit of their ranks. For each bit, from the highest on, rows are kept together that
    agree in all bits above it; a row with the bit set then makes a pair with each earlier row of its group without.
    """
    ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
    found = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        group, is_set = ranks >> (bit + 1), (ranks >> bit & 1).astype(bool)
        clear_before = np.cumsum(~is_set) - ~is_set
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        since = clear_before - np.repeat(clear_before[starts], np.diff(starts, append=len(ranks)))
        found += int(since[is_set].sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return found


def sorts(first: Ints, second: Ints, tolerance: float) -> bool:
    """Whether rows in the order of the first column are nearly in the order of the second, or in the opposite order.

    Of rows with the same first value, half of the pairs count as ascending. Pairs with the same second value do not
    count: else a column of few values would never be in any order, and one of a single value always.
    """
    counts = np.unique(second, return_counts=True)[1]
    different = (len(second) ** 2 - int((counts.astype(np.int64) ** 2).sum())) // 2
    ascending = sum(ascending_pairs(second[np.lexsort((ties, first))]) for ties in (second, -second)) / 2
    return different > 0 and not tolerance <= ascending / different <= 1 - tolerance


def are_alike(first: Ints, second: Ints, tolerance: float) -> bool:
    """Whether rows in the order of each of two columns of ranks are nearly in the order of the other."""
    return sorts(first, second, tolerance) and sorts(second, first, tolerance)


def terms_alike(columns: Sequence[Ints], tolerance: float) -> Graph:
    """An edge between two columns of ranks that are alike."""
    graph: Graph = [set() for _ in columns]
    for i, first in enumerate(columns):
        for j in range(i):
            if are_alike(first, columns[j], tolerance):
                graph[i].add(j)
                graph[j].add(i)
    return graph


def conditions_alike(truth: Bools, tolerance: float) -> Graph:
    """An edge between two conditions whose mean-square contingency is above 1 - tolerance. `truth`: conditions x rows.

    It is 0 if they are independent, 1 if one tells the other; of two values, the square of their correlation."""
    hold = truth.astype(np.float64)
    share = hold.mean(axis=1)
    spread = share * (1 - share)
    varied = np.outer(spread, spread)
    with np.errstate(divide="ignore", invalid="ignore"):  # a condition that holds always or never is like no other
        alike = (hold @ hold.T / truth.shape[1] - np.outer(share, share)) ** 2 / varied > 1 - tolerance
    return [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(alike & (varied > 0))]


def primary(graph: Graph, frequency: Sequence[float], most: int, policy: Policy = "frequency") -> list[int]:
    """At most so many features, the most important first, that speak for all others they are alike to.

    A chosen feature settles the edges to its neighbours and those among them. A neighbour that has no other edges is
    spoken for; one that has may still be chosen, for likeness does not carry over.

    >>> fig_4_4 = [{1, 2}, {0, 2, 3}, {0, 1}, {1, 4, 5}, {3}, {3}]
    >>> primary(fig_4_4, [9, 3, 2, 5, 1, 1], 2)
    [0, 3]
    """
    if policy not in get_args(Policy):
        raise LayoutError(f"policy must be one of {', '.join(get_args(Policy))}, not {policy!r}")
    left = [set(near) for near in graph]
    free = set(range(len(graph)))
    chosen: list[int] = []

    def importance(i: int) -> tuple[float, float, int]:
        degree = len(left[i])
        keys = {"frequency": (frequency[i], degree), "degree": (degree, frequency[i])}
        return *keys.get(policy, (frequency[i] * (1 + degree), degree)), -i

    while free and len(chosen) < most:
        now = max(free, key=importance)
        chosen.append(now)
        free.discard(now)
        near = left[now]
        for i in near:
            left[i] -= near | {now}
        free -= {i for i in near if not left[i]}
        left[now] = set()
    return chosen
