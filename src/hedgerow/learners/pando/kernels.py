"""Compiled loops that grow several trees together: they compute the gain of each cut beside the other trees.

`clauses` and `node` are those of `core/learning/trees/kernels.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.trees.kernels import by_entropy, fill_facts, lacking, lacks_all


@compiled_loop(nogil=True)
def changes(
    node: Any, sizes: Any, queries: Any, clauses: Any, least: int, near: bool, promised: Any, cuts: slice
) -> tuple[Any, Any, Any, Any]:
    """Return the changes for queries by these cuts of a node that all the queries read.

    There are four columns: the place of the cut, the place in `queries`, the query's gain by a row on the left, and its
    gain by a row on the right. A cut that leaves a side with fewer than `least` rows changes nothing. `promised`: see
    `path_facts`; if it is empty, the facts of both sides are those of their rows.
    """
    some, other, n = node.some, node.other, node.rows
    ls, lo, rs, ro = some.copy(), other.copy(), some.copy(), other.copy()
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    lacks = np.zeros(len(queries))
    if near:
        for i in range(len(queries)):
            for at in range(starts[queries[i]], starts[queries[i] + 1]):
                lacks[i] = max(lacks[i], lacking(needs[at], clauses, some, other))
    cut, query = np.empty(len(queries), np.int32), np.empty(len(queries), np.int32)
    by_left, by_right = np.empty(len(queries)), np.empty(len(queries))
    m = 0
    for c in range(cuts.start, cuts.stop):
        if min(sizes[c], n - sizes[c]) < least:
            continue
        if promised.shape[1]:
            number = node.cuts[c]
            for d in range(len(some)):
                ls[d], lo[d] = some[d] and promised[0, number, d], other[d] and promised[1, number, d]
                rs[d], ro[d] = some[d] and promised[2, number, d], other[d] and promised[3, number, d]
        else:
            fill_facts(node, c, node.used, (ls, lo, rs, ro))
        if m + len(queries) > len(cut):
            cut, query = np.append(cut, np.empty_like(cut)), np.append(query, np.empty_like(query))
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
                cut[m], query[m] = c, i
                by_left[m], by_right[m] = weights[q] * (on_left - lacks[i]), weights[q] * (on_right - lacks[i])
                m += 1
    return cut[:m], query[:m], by_left[:m], by_right[:m]


@compiled_loop(nogil=True)
def gains_beside(tried_cuts: Any, changes: Any, node: Any, sizes: Any, reads: Any, counts: Any, eps: float) -> Any:
    """Return the gains of these cuts, as in `best_cut`, from their changes: the first of each cut, and three columns.

    Only rows count that the query in place i reads in all other trees: `reads[i]`; their number is `counts[i]`.
    """
    starts, query, by_left, by_right = changes
    bits, n = node.bits, node.rows
    gains = np.zeros(len(tried_cuts))
    for k in range(len(tried_cuts)):
        c = tried_cuts[k]
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
    """Return the number of set bits in a word, by sums of 2, 4 and then 8 bits."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled_loop()
def clear(bits: Any, queries: Any, rows: Any) -> None:
    """Set the bits of these queries and rows to 0."""
    for q in queries:
        of_query = bits[q]
        for r in rows:
            of_query[r >> 6] &= ~(np.uint64(1) << np.uint64(r & 63))
