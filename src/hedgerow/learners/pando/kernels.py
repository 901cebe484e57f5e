"""Compiled loops that grow several trees together: the gain of each cut beside the other trees.

`clauses` are `ClauseArrays`, as in `core/learning/trees/kernels.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.trees.kernels import by_entropy, lacking, lacks_all, sides


@compiled_loop(nogil=True)
def changes(
    bits: Any,
    n: int,
    sizes: Any,
    cuts: Any,
    some: Any,
    other: Any,
    queries: Any,
    asked: Any,
    clauses: Any,
    least: int,
    near: bool,
    first: int,
    end: int,
) -> tuple[Any, Any, Any, Any]:
    """What the cuts in rows `first` to `end` of `bits` change for queries, all of which read the node.

    Four columns: the row of the cut, the place in `queries`, and what the query gains by a row on the left and on the
    right. A cut that leaves a side with less than `least` rows changes nothing."""
    ls, lo, rs, ro = some.copy(), other.copy(), some.copy(), other.copy()
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    lacks = np.zeros(len(queries))
    if near:
        for i in range(len(queries)):
            for at in range(starts[queries[i]], starts[queries[i] + 1]):
                lacks[i] = max(lacks[i], lacking(needs[at], clauses, some, other))
    row, query = np.empty(len(queries), np.int32), np.empty(len(queries), np.int32)
    by_left, by_right = np.empty(len(queries)), np.empty(len(queries))
    m = 0
    for c in range(first, end):
        if min(sizes[c], n - sizes[c]) < least:
            continue
        sides(bits, n, c, cuts, asked, ls, lo, rs, ro)
        if m + len(queries) > len(row):
            row, query = np.append(row, np.empty_like(row)), np.append(query, np.empty_like(query))
            by_left, by_right = np.append(by_left, np.empty_like(by_left)), np.append(by_right, np.empty_like(by_right))
        for i in range(len(queries)):
            q = queries[i]
            on_left, on_right = lacks[i], lacks[i]
            for at in range(starts[q], starts[q + 1]):
                if near:
                    on_left = max(on_left, lacking(needs[at], clauses, ls, lo))
                    on_right = max(on_right, lacking(needs[at], clauses, rs, ro))
                else:
                    on_left = 1.0 if lacks_all(needs[at], clauses, ls, lo) else on_left
                    on_right = 1.0 if lacks_all(needs[at], clauses, rs, ro) else on_right
                if on_left == 1.0 and on_right == 1.0:
                    break
            if on_left > lacks[i] or on_right > lacks[i]:
                row[m], query[m] = c, i
                by_left[m], by_right[m] = weights[q] * (on_left - lacks[i]), weights[q] * (on_right - lacks[i])
                m += 1
    return row[:m], query[:m], by_left[:m], by_right[:m]


@compiled_loop(nogil=True)
def gains_beside(
    tried: Any,
    starts: Any,
    query: Any,
    by_left: Any,
    by_right: Any,
    bits: Any,
    n: int,
    sizes: Any,
    reads: Any,
    counts: Any,
    eps: float,
) -> Any:
    """The gains, as in `best_cut`, of the cuts in the rows `tried` of `bits`, by what these change (see `changes`).

    Only rows count that the query in place i reads in all other trees: `reads[i]`, so many as `counts[i]`."""
    gains = np.zeros(len(tried))
    for k in range(len(tried)):
        c = tried[k]
        for at in range(starts[c], starts[c + 1]):
            i = query[at]
            if counts[i] == 0:
                continue
            both = 0.0
            for w in range(bits.shape[1]):
                both += _ones(bits[c, w] & reads[i, w])
            gains[k] += by_left[at] * both + by_right[at] * (counts[i] - both)
        if gains[k] > 0:
            gains[k] = by_entropy(gains[k], sizes[c] / n, eps)
    return gains


@compiled_loop()
def _ones(x: Any) -> Any:
    """How many bits of a word are set, by sums of 2, 4 and then 8 bits."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled_loop()
def chosen(bits: Any, rows: Any) -> Any:
    """The bits of these rows, packed again."""
    found = np.zeros((len(bits), (len(rows) + 63) // 64), np.uint64)
    for i in range(len(bits)):
        own = bits[i]
        for k in range(len(rows)):
            r = rows[k]
            found[i, k >> 6] |= ((own[r >> 6] >> np.uint64(r & 63)) & np.uint64(1)) << np.uint64(k & 63)
    return found


@compiled_loop()
def clear(bits: Any, queries: Any, rows: Any) -> None:
    """Set the bits of these queries and rows to 0."""
    for q in queries:
        own = bits[q]
        for r in rows:
            own[r >> 6] &= ~(np.uint64(1) << np.uint64(r & 63))
