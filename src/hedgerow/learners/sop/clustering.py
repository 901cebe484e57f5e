"""Join groups of rows with equal features pair by pair into blocks (Sun et al., 2014; qd-tree paper, 2.2.2).

A block's vector has a 1 for each feature that holds on some row of it. With a 0 at feature j, the queries that j serves
skip the block; their weight is w_j. So the cheapest pair to join is the one that loses the least weight:

    size_i w(v_j - v_i) + size_j w(v_i - v_j)        w(v_j - v_i): weight of the features of j that i lacks

Blocks of `least` rows are complete. For each block the cheapest partner among the later blocks is kept. A join changes
one vector, so a round compares only that block with all others. A block whose partner is gone looks for a new one when
its old price, which can only rise, is the lowest of all. A heap would not help: the one pass is needed anyway.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.cells.kernels import SUM_ROUNDING

MAX_WALKS = 256  # through the spanning tree, each from another start
FAR = 1 << 30  # a distance above any number of features


def grouped_rows(vectors: Bools, rows: Ints, weights: npt.ArrayLike, least: int) -> Ints:
    """The block of each vector; blocks are numbered in the order of their first vectors. `vectors`: vectors x features.

    >>> grouped_rows(np.array([[1, 0], [1, 1], [0, 0]], bool), np.array([5, 5, 10]), [2.0, 1.0], 10).tolist()
    [0, 0, 1]
    """
    if not len(vectors):
        return np.zeros(0, np.int64)
    packed = np.packbits(vectors, axis=1)
    into = pair(packed, rows.astype(np.float64), _byte_weights(np.asarray(weights, np.float64)), float(least))
    return np.unique(into, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _byte_weights(weights: Floats) -> Floats:
    """Bytes of a packed vector x values 0 to 255: the weight of the features that are set."""
    bytes_ = -(-len(weights) // 8)
    padded = np.pad(weights, (0, 8 * bytes_ - len(weights))).reshape(bytes_, 8)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    byte_weights: Floats = (bits[None, :, :] * padded[:, None, :]).sum(axis=2)
    return byte_weights


@compiled_loop()
def _weight(i: int, vectors: Any, weigh: Any) -> float:
    weight = 0.0
    for b in range(vectors.shape[1]):
        weight += weigh[b, vectors[i, b]]
    return weight


@compiled_loop()
def _price(i: int, k: int, blocks: Any, weigh: Any, most: float) -> float:
    """The weight lost by joining i and k; infinite if a cheap lower bound is already above `most`."""
    vectors, rows, weight = blocks
    more = weight[k] - weight[i]  # at least so much of k's weight is new to i
    if (more * rows[i] if more > 0 else -more * rows[k]) * (1 - SUM_ROUNDING) > most:
        return np.inf
    mine = theirs = 0.0
    for b in range(vectors.shape[1]):
        x, y = vectors[i, b], vectors[k, b]
        mine += weigh[b, y & ~x]
        theirs += weigh[b, x & ~y]
    price: float = rows[i] * mine + rows[k] * theirs
    return price


@compiled_loop()
def _partner(i: int, open_: Any, blocks: Any, weigh: Any) -> Any:
    """The cheapest partner of block i among the later blocks (-1: none), and its price."""
    at, price = -1, np.inf
    for k in range(i + 1, len(open_)):
        if open_[k]:
            new_price = _price(i, k, blocks, weigh, price)
            if new_price < price:
                at, price = k, new_price
    return at, price


@compiled_loop()
def pair(vectors: Any, rows: Any, weigh: Any, least: float) -> Any:
    """Repeatedly join the cheapest pair of blocks that are too small; returns the first member of each one's block.

    Of equally cheap pairs the first is joined. A last small block joins the complete block that loses the least weight.
    `vectors` and `rows` are updated to those of the blocks.
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
            new_price = _price(k, i, blocks, weigh, price[k]) if open_[i] and k < i else np.inf
            if new_price < price[k] or (new_price == price[k] and i < at[k]):
                at[k], price[k], stale[k] = i, new_price, False
            elif at[k] == j or at[k] == i:
                stale[k] = True
        if open_[i]:
            at[i], price[i] = _partner(i, open_, blocks, weigh)
    if i >= 0:
        to, lowest = -1, np.inf
        for k in range(n):
            if into[k] == k and k != i:
                new_price = _price(i, k, blocks, weigh, lowest)
                if new_price < lowest:
                    to, lowest = k, new_price
        if to >= 0:
            into[max(i, to)] = min(i, to)
    for k in range(n):
        while into[into[k]] != into[k]:
            into[k] = into[into[k]]
    return into


def chained(vectors: Bools) -> Ints:
    """An order of the vectors in which neighbours share zeros: a minimum spanning tree walked in preorder (4.1.2).

    The distance is the number of bits that differ. Of the walks from up to `MAX_WALKS` starts, the shortest is taken.

    >>> chained(np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]], bool)).tolist()
    [0, 2, 1, 3]
    """
    n = len(vectors)
    packed = np.packbits(vectors, axis=1)
    near = _spanning(packed)
    best, shortest = np.arange(n), np.inf
    for start in np.unique(np.linspace(0, n - 1, MAX_WALKS).astype(np.int64)).tolist() if n else []:
        order = _preorder(near, start)
        length = np.bitwise_count(packed[order[1:]] ^ packed[order[:-1]]).sum()
        if length < shortest:
            best, shortest = order, length
    return best


def _spanning(packed: npt.NDArray[np.uint8]) -> list[list[int]]:
    """Each vector's neighbours in a minimum spanning tree (by Prim's algorithm), the nearest first."""
    n = len(packed)
    near: list[list[int]] = [[] for _ in range(n)]
    nearest, distance = np.zeros(n, np.int64), np.full(n, FAR)
    distance[:1] = -1
    new = 0
    for _ in range(n - 1):
        to_new = np.bitwise_count(packed ^ packed[new]).sum(axis=1)
        closer = to_new < distance
        nearest[closer], distance[closer] = new, to_new[closer]
        new = int(np.argmin(np.where(distance < 0, FAR, distance)))
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
