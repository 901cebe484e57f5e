"""Rows with equal features, joined pair by pair into blocks (Sun et al., 2014, as the qd-tree paper tells it in 2.2.2).

A block's vector has a 1 for each feature that holds on some row of it. For every row, a 0 at feature j spares the w_j
queries that feature j serves. So the cheapest pair to join is the one that gives up least:

    size_i w(v_j - v_i) + size_j w(v_i - v_j)        w(v_j - v_i): weight of the features of j that i lacks

Blocks of `least` rows are done. Each block knows its cheapest partner among the later ones. A join changes one vector,
so a round compares that one with all others and looks for a new partner only where the old one is gone and the price
known so far, which can only rise, is the lowest of all. No heap would help: that one pass over the blocks is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from hedgerow.core.pruning.block_stats import Bools, Ints


def grouped_rows(vectors: Bools, rows: Ints, weights: npt.ArrayLike, least: int) -> Ints:
    """The block of each vector, numbered in the order of their first vectors; `vectors` are vectors x features.

    >>> grouped_rows(np.array([[1, 0], [1, 1], [0, 0]], bool), np.array([5, 5, 10]), [2.0, 1.0], 10).tolist()
    [0, 0, 1]
    """
    if not len(vectors):
        return np.zeros(0, np.int64)
    packed = np.packbits(vectors, axis=1)
    into = pair(packed, rows.astype(np.float64), _byte_weights(np.asarray(weights, np.float64)), float(least))
    return np.unique(into, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _byte_weights(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What each value of each byte of a packed vector weighs."""
    bytes_ = -(-len(weights) // 8)
    padded = np.pad(weights, (0, 8 * bytes_ - len(weights))).reshape(bytes_, 8)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    found: npt.NDArray[np.float64] = (bits[None, :, :] * padded[:, None, :]).sum(axis=2)
    return found


@njit(cache=True)
def _weight(i: int, vectors: Any, weigh: Any) -> float:
    weight = 0.0
    for b in range(vectors.shape[1]):
        weight += weigh[b, vectors[i, b]]
    return weight


@njit(cache=True)
def _price(i: int, k: int, blocks: Any, weigh: Any, most: float) -> float:
    """What joining i and k gives up; infinite where their weights alone show that it is above `most`."""
    vectors, rows, weight = blocks
    more = weight[k] - weight[i]  # what k has more than i is new to i at least
    if (more * rows[i] if more > 0 else -more * rows[k]) * (1 - 1e-9) > most:
        return np.inf
    mine = theirs = 0.0
    for b in range(vectors.shape[1]):
        x, y = vectors[i, b], vectors[k, b]
        mine += weigh[b, y & ~x]
        theirs += weigh[b, x & ~y]
    price: float = rows[i] * mine + rows[k] * theirs
    return price


@njit(cache=True)
def _partner(i: int, open_: Any, blocks: Any, weigh: Any) -> Any:
    """The cheapest later partner of block i, the first of those, and its price; -1: there is none."""
    at, price = -1, np.inf
    for k in range(i + 1, len(open_)):
        if open_[k]:
            found = _price(i, k, blocks, weigh, price)
            if found < price:
                at, price = k, found
    return at, price


@njit(cache=True)
def pair(vectors: Any, rows: Any, weigh: Any, least: float) -> Any:
    """The cheapest pair of blocks that are too small, again and again: into which, the first of its block, each went.

    Of equally cheap pairs the first is joined. One that is left alone joins the full block that gives up least.
    `vectors` and `rows` become those of the blocks.
    """
    n = len(rows)
    weight = np.array([_weight(i, vectors, weigh) for i in range(n)])
    blocks = vectors, rows, weight
    into = np.arange(n)
    open_ = rows < least
    at, price, stale = np.full(n, -1), np.full(n, np.inf), np.zeros(n, np.bool_)
    for i in range(n):
        if open_[i]:
            at[i], price[i] = _partner(i, open_, blocks, weigh)
    while True:
        i = -1
        for k in range(n):
            if open_[k] and (i < 0 or price[k] < price[i]):
                i = k
        if i < 0 or price[i] == np.inf:
            break
        if stale[i]:
            at[i], price[i] = _partner(i, open_, blocks, weigh)
            stale[i] = False
            continue
        j = at[i]
        rows[i] += rows[j]
        vectors[i] |= vectors[j]
        weight[i] = _weight(i, vectors, weigh)
        into[j] = i
        open_[j], open_[i] = False, rows[i] < least
        for k in range(j):
            if not open_[k] or k == i:
                continue
            found = _price(k, i, blocks, weigh, price[k]) if open_[i] and k < i else np.inf
            if found < price[k] or (found == price[k] and i < at[k]):
                at[k], price[k], stale[k] = i, found, False
            elif at[k] == j or at[k] == i:
                stale[k] = True
        if open_[i]:
            at[i], price[i] = _partner(i, open_, blocks, weigh)
    if i >= 0:
        to, lowest = -1, np.inf
        for k in range(n):
            if into[k] == k and k != i:
                found = _price(i, k, blocks, weigh, lowest)
                if found < lowest:
                    to, lowest = k, found
        if to >= 0:
            into[max(i, to)] = min(i, to)
    for k in range(n):
        while into[into[k]] != into[k]:
            into[k] = into[into[k]]
    return into


def chained(vectors: Bools) -> Ints:
    """The vectors in an order in which neighbours share zeros: a minimum spanning tree walked in preorder (4.1.2).

    The distance is the number of bits that differ. A walk from another start is another order; of `STARTS` of them the
    one with the shortest way is taken.

    >>> chained(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]], bool)).tolist()
    [0, 2, 1, 3]
    """
    n = len(vectors)
    packed = np.packbits(vectors, axis=1)
    near = _spanning(packed)
    best, shortest = np.arange(n), np.inf
    for start in np.unique(np.linspace(0, n - 1, STARTS).astype(np.int64)).tolist() if n else []:
        order = _preorder(near, start)
        length = np.bitwise_count(packed[order[1:]] ^ packed[order[:-1]]).sum()
        if length < shortest:
            best, shortest = order, length
    return best


STARTS = 256


def _spanning(packed: npt.NDArray[np.uint8]) -> list[list[int]]:
    """Each vector's neighbours in a minimum spanning tree, by Prim's algorithm, the nearest first."""
    n = len(packed)
    near: list[list[int]] = [[] for _ in range(n)]
    nearest, distance = np.zeros(n, np.int64), np.full(n, 1 << 30)
    distance[:1] = -1
    new = 0
    for _ in range(n - 1):
        found = np.bitwise_count(packed ^ packed[new]).sum(axis=1)
        closer = found < distance
        nearest[closer], distance[closer] = new, found[closer]
        new = int(np.argmin(np.where(distance < 0, 1 << 30, distance)))
        near[nearest[new]].append(new)
        near[new].append(int(nearest[new]))
        distance[new] = -1
    for i, own in enumerate(near):
        own.sort(key=lambda k: (int(np.bitwise_count(packed[i] ^ packed[k]).sum()), k))
    return near


def _preorder(near: list[list[int]], start: int) -> Ints:
    order: list[int] = []
    todo, seen = [start], {start}
    while todo:
        here = todo.pop()
        order.append(here)
        fresh = [k for k in near[here] if k not in seen]
        seen.update(fresh)
        todo += reversed(fresh)
    return np.array(order, np.int64)
