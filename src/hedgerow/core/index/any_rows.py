"""Choose few files that surely hold k matching rows: LIMIT without ORDER BY is right with any rows of the answer."""

from __future__ import annotations

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.index.whole_matches import MatchedFiles


def any_rows(matched: MatchedFiles, k: int) -> Bools | None:
    """Return the fewest files that match as a whole and hold `k` rows, as a mask; None if all of them hold fewer.

    >>> matched = MatchedFiles(*(np.array([True] * 3),) * 2, *(np.array([2, 9, 5]),) * 2)
    >>> any_rows(matched, 10), any_rows(matched, 17)
    (array([False,  True,  True]), None)
    """
    sizes = np.sort(matched.guaranteed)[::-1]
    rows = np.cumsum(sizes)
    if k <= 0 or not len(rows) or rows[-1] < k:
        return None
    files = int(np.searchsorted(rows, k)) + 1
    smallest = sizes[files - 1]
    chosen: Bools = matched.guaranteed > smallest
    alike = np.flatnonzero(matched.guaranteed == smallest)
    chosen[alike[: files - int(chosen.sum())]] = True
    return chosen
