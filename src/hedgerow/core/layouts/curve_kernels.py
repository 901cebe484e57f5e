"""The compiled loop that interleaves the bits of several columns into one key."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop


@compiled_loop()
def spread(ranks: Any, to: Any, keys: Any) -> None:
    """Add the bits of ranks to keys: bit j becomes bit `to[j]` of the key, and is dropped if that is -1.

    A table for each byte of a rank holds all of the byte's bits at their places in the key.
    """
    table = np.zeros((8, 256), np.uint64)
    first, last = 8, -1
    for j in range(len(to)):
        if to[j] >= 0:
            first, last = min(first, j >> 3), max(last, j >> 3)
            bit = np.uint64(1) << np.uint64(to[j])
            for value in range(256):
                if (value >> (j & 7)) & 1:
                    table[j >> 3, value] |= bit
    for r in range(len(ranks)):
        for byte in range(first, last + 1):
            keys[r] |= table[byte, (ranks[r] >> np.uint64(8 * byte)) & np.uint64(255)]
