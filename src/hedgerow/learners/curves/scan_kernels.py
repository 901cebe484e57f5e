"""Compiled loops that compute the rows that queries scan if rows are in a given order."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop


@compiled_loop()
def zone_maps(codes: Any, order: Any, starts: Any, wide: int) -> Any:
    """Return for each column and block the least and the greatest code, where -1 means no value.

    For the columns from `wide` on, return the codes themselves as bits.
    """
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
    """Return the number of rows that each query scans; it scans a block in which all conditions of a box may hold."""
    column, values, span_starts = conditions
    wide, blocks = low.shape[0], len(rows)
    rows_read = np.zeros(len(queries) - 1, np.int64)
    may, opened = np.empty(blocks, np.int32), np.empty(blocks, np.int32)
    # Every loop over blocks is simple, so that the compiler vectorises it.
    for q in range(len(rows_read)):
        opened[:] = 0
        for box in range(queries[q], queries[q + 1]):
            may[:] = 1
            for i in range(boxes[box], boxes[box + 1]):
                c = column[i]
                if c >= wide:
                    listed, value = have[c - wide], values[i]
                    for b in range(blocks):
                        may[b] &= listed[b] & value != 0
                    continue
                least, most = low[c], high[c]
                if span_starts[i + 1] == span_starts[i] + 1:
                    first, last = spans[span_starts[i]]
                    for b in range(blocks):
                        may[b] &= (least[b] <= last) & (most[b] >= first)
                else:
                    for b in range(blocks):
                        holds = False
                        for s in range(span_starts[i], span_starts[i + 1]):
                            holds |= (least[b] <= spans[s, 1]) & (most[b] >= spans[s, 0])
                        may[b] &= holds
            for b in range(blocks):
                opened[b] |= may[b]
        read = 0
        for b in range(blocks):
            read += rows[b] * opened[b]
        rows_read[q] = read
    return rows_read
