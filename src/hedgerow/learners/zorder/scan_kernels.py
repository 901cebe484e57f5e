"""Compiled loops that order rows by keys and compute what queries scan of the resulting blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop

_DIGIT = 11  # bits that one pass of the sort compares


@compiled_loop()
def radix_order(keys: Any, bits: int) -> Any:
    """The order of the rows by key, a stable sort; only the lowest `bits` of a key may be set."""
    n = len(keys)
    order, other = np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    now, then = keys.copy(), np.empty(n, np.uint64)
    mask = np.uint64((1 << _DIGIT) - 1)
    for low in range(0, bits, _DIGIT):
        shift = np.uint64(low)
        at = np.zeros((1 << _DIGIT) + 1, np.int64)
        for r in range(n):
            at[((now[r] >> shift) & mask) + np.uint64(1)] += 1
        at = np.cumsum(at)
        for r in range(n):
            digit = (now[r] >> shift) & mask
            then[at[digit]], other[at[digit]] = now[r], order[r]
            at[digit] += 1
        now, then, order, other = then, now, other, order
    return order


@compiled_loop()
def changes(keys: Any, order: Any) -> Any:
    """The ends of the runs of equal keys, as numbers of rows."""
    ends = np.empty(len(order), np.int64)
    runs = 0
    for r in range(len(order)):
        if r + 1 == len(order) or keys[order[r]] != keys[order[r + 1]]:
            ends[runs] = r + 1
            runs += 1
    return ends[:runs]


@compiled_loop()
def zone_maps(codes: Any, order: Any, starts: Any, wide: int) -> Any:
    """For each column and block the least and the greatest code (-1 is no value); for columns from `wide` on, the codes
    themselves as bits."""
    blocks, columns = len(starts), codes.shape[1]
    low, high = np.empty((wide, blocks), np.int32), np.empty((wide, blocks), np.int32)
    have = np.empty((columns - wide, blocks), np.uint64)
    least, most, some = np.empty(wide, np.int32), np.empty(wide, np.int32), np.empty(columns - wide, np.uint64)
    for b in range(blocks):
        least[:], most[:], some[:] = 2**31 - 1, -1, 0
        end = starts[b + 1] if b + 1 < blocks else len(order)
        for at in range(starts[b], end):
            own = codes[order[at]]
            for c in range(wide):
                least[c] = min(least[c], own[c] if own[c] >= 0 else least[c])
                most[c] = max(most[c], own[c])
            for c in range(wide, columns):
                some[c - wide] |= np.uint64(1) << np.uint64(own[c])
        low[:, b], high[:, b], have[:, b] = least, most, some
    return low, high, have


@compiled_loop()
def scanned(low: Any, high: Any, have: Any, rows: Any, spans: Any, conditions: Any, boxes: Any, queries: Any) -> Any:
    """The number of rows that each query scans: a block is scanned if all conditions of one of its boxes may hold."""
    column, values, own_spans = conditions
    wide, blocks = low.shape[0], len(rows)
    found = np.zeros(len(queries) - 1, np.int64)
    may, opened = np.empty(blocks, np.int32), np.empty(blocks, np.int32)
    # Every loop over blocks is simple, so that the compiler vectorises it.
    for q in range(len(found)):
        opened[:] = 0
        for box in range(queries[q], queries[q + 1]):
            may[:] = 1
            for i in range(boxes[box], boxes[box + 1]):
                c = column[i]
                if c >= wide:
                    own, value = have[c - wide], values[i]
                    for b in range(blocks):
                        may[b] &= own[b] & value != 0
                    continue
                least, most = low[c], high[c]
                if own_spans[i + 1] == own_spans[i] + 1:
                    first, last = spans[own_spans[i]]
                    for b in range(blocks):
                        may[b] &= (least[b] <= last) & (most[b] >= first)
                else:
                    for b in range(blocks):
                        holds = False
                        for s in range(own_spans[i], own_spans[i + 1]):
                            holds |= (least[b] <= spans[s, 1]) & (most[b] >= spans[s, 0])
                        may[b] &= holds
            for b in range(blocks):
                opened[b] |= may[b]
        read = 0
        for b in range(blocks):
            read += rows[b] * opened[b]
        found[q] = read
    return found
