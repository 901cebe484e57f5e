"""Find redundant features, and choose one of each group of them (thesis, 4.2.2 and 4.3).

terms         rows in the order of one are nearly in the order of the other, or in reverse: year, items sold
conditions    where one holds, the other nearly always holds, or nearly never: country = 'FR', currency = 'EUR'

A graph has an edge between any two such features. Features are chosen from it one by one; a chosen feature represents
its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import LayoutError

Policy = Literal["frequency", "degree", "both"]
Graph = list[set[int]]  # the neighbours of each feature


def ascending_pairs(values: Ints) -> int:
    """Return the number of pairs whose later value is larger; its share of all pairs is the thesis' sort index.

    >>> ascending_pairs(np.array([1, 3, 5, 2, 4])) / 10
    0.7

    Two values first differ in one bit of their ranks. For each bit, from the highest on, rows that agree in all higher
    bits form a group; a row with the bit set makes a pair with each earlier row of its group without it.
    """
    ranks = np.unique(values, return_inverse=True)[1].reshape(-1)
    pairs = 0
    for bit in reversed(range(int(ranks.max(initial=0)).bit_length())):
        group, is_set = ranks >> (bit + 1), (ranks >> bit & 1).astype(bool)
        clear_before = np.cumsum(~is_set) - ~is_set
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        since = clear_before - np.repeat(clear_before[starts], np.diff(starts, append=len(ranks)))
        pairs += int(since[is_set].sum())
        ranks = ranks[np.argsort(ranks >> bit, kind="stable")]
    return pairs


def sorts(first: Ints, second: Ints, tolerance: float) -> bool:
    """True if rows in the order of the first column are nearly in the order of the second, or in the opposite order.

    Half of the pairs with the same first value count as ascending. Pairs with the same second value do not count:
    otherwise a column of few values would never be in any order, and a column of a single value always.
    """
    counts = np.unique(second, return_counts=True)[1]
    different = (len(second) ** 2 - int((counts.astype(np.int64) ** 2).sum())) // 2
    ascending = sum(ascending_pairs(second[np.lexsort((ties, first))]) for ties in (second, -second)) / 2
    return different > 0 and not tolerance <= ascending / different <= 1 - tolerance


def are_alike(first: Ints, second: Ints, tolerance: float) -> bool:
    """True if rows in the order of either column are nearly in the order of the other, or in the opposite order."""
    return sorts(first, second, tolerance) and sorts(second, first, tolerance)


def terms_alike(columns: Sequence[Ints], tolerance: float) -> Graph:
    """Return the graph with an edge between any two terms that are alike; `columns`: for each term, the rows' ranks."""
    graph: Graph = [set() for _ in columns]
    for i, first in enumerate(columns):
        for j in range(i):
            if are_alike(first, columns[j], tolerance):
                graph[i].add(j)
                graph[j].add(i)
    return graph


def conditions_alike(truth: Bools, tolerance: float) -> Graph:
    """Return the graph with an edge between two conditions whose mean-square contingency is above 1 - tolerance.

    `truth` is conditions x rows. The contingency is the square of their correlation: 0 if they are independent, 1 if
    one determines the other.
    """
    hold = truth.astype(np.float64)
    share = hold.mean(axis=1)
    spread = share * (1 - share)
    varied = np.outer(spread, spread)
    with np.errstate(divide="ignore", invalid="ignore"):  # a condition that always or never holds has no edge
        alike = (hold @ hold.T / truth.shape[1] - np.outer(share, share)) ** 2 / varied > 1 - tolerance
    return [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(alike & (varied > 0))]


def primary(graph: Graph, frequency: Sequence[float], most: int, policy: Policy = "frequency") -> list[int]:
    """Return at most `most` features that represent the others, the most important first.

    A chosen feature removes the edges to its neighbours and between them. A neighbour without other edges is
    represented by it. A neighbour with other edges may still be chosen, because likeness is not transitive.

    >>> fig_4_4 = [{1, 2}, {0, 2, 3}, {0, 1}, {1, 4, 5}, {3}, {3}]
    >>> primary(fig_4_4, [9, 3, 2, 5, 1, 1], 2)
    [0, 3]
    """
    if policy not in get_args(Policy):
        raise LayoutError(f"policy must be one of {', '.join(get_args(Policy))}, not {policy!r}")
    edges = [set(near) for near in graph]
    free = set(range(len(graph)))
    chosen: list[int] = []

    def importance(i: int) -> tuple[float, float, int]:
        degree = len(edges[i])
        keys = {"frequency": (frequency[i], degree), "degree": (degree, frequency[i])}
        return *keys.get(policy, (frequency[i] * (1 + degree), degree)), -i

    while free and len(chosen) < most:
        best = max(free, key=importance)
        chosen.append(best)
        free.discard(best)
        near = edges[best]
        for i in near:
            edges[i] -= near | {best}
        free -= {i for i in near if not edges[i]}
        edges[best] = set()
    return chosen
