"""Names for the types of arrays that most modules use, and what numpy does too slowly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]  # sets of outcomes: FALSE, TRUE and NULL are a bit each
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MAX_FLAGS = 1 << 23  # bytes of memory for a table of flags, one for each number that may occur


def unique_numbers(numbers: Ints, limit: int) -> Ints:
    """Return the different numbers, sorted; all are in [0, limit). `np.unique` hashes them, ten times as slow.

    >>> unique_numbers(np.array([5, 2, 5]), 6)
    array([2, 5])
    """
    if limit <= _MAX_FLAGS:
        flags = np.zeros(limit, bool)
        flags[numbers] = True
        return np.flatnonzero(flags)
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]
