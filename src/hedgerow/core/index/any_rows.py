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
    if k <= 0 or matched.guaranteed.sum() < k:
        return None
    largest_first = np.argsort(-matched.guaranteed, kind="stable")
    files = int(np.searchsorted(np.cumsum(matched.guaranteed[largest_first]), k)) + 1
    chosen = np.zeros(len(matched.whole), bool)
    chosen[largest_first[:files]] = True
    return chosen
