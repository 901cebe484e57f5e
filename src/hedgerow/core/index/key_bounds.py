"""Describe which keys each file may hold, so that keys that a query finds while it runs choose the files of a join.

The bounds of all files stand on one line. A key that equals bound i has place 2 i + 1, and one in the gap before it has
place 2 i. A file may hold the keys from its first place to its last one:

    bounds           10        20        30
    places        0   1    2    3    4    5   6
    file 0            |---------|                 keys 10 to 20
    file 1                 |----------|           keys above 10, to 30
    keys 12, 35            ^              ^       file 0 and file 1 may hold the key 12, no file holds the key 35

A file of few values has them as a list of places; then it holds no other keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.value_codes import Codes

# Floating-point numbers are not among these kinds, because 0.0 equals -0.0, and NaN is in no range.
_KINDS = (kinds.INT, kinds.DECIMAL, kinds.STRING, kinds.DATE, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ)
_MAX_SHARE = 0.8  # of the files may hold a key; it is 0.83 if the keys of files are random, since ranks are no values


@dataclass(frozen=True, slots=True)
class KeyBounds:
    """The sorted bounds, and the first and last place of each file; a file without any key has `first > last`.

    `sets`: the places of the values of files that have few.
    """

    values: Sequence[Value]
    first: Codes
    last: Codes
    sets: DistinctSets

    @staticmethod
    def unknown(files: int) -> KeyBounds:
        """Return the bounds of files of which each may hold any key: no values, so all keys have place 0."""
        zeros = np.zeros(files, np.int32)
        return KeyBounds([], zeros, zeros, DistinctSets.build([None] * files))


def key_bounds(parts: Sequence[Stats], key: TypedTerm) -> KeyBounds | None:
    """Return the bounds of a key in the files of all parts; None if no keys would skip a file.

    >>> import pyarrow as pa
    >>> from hedgerow.core.predicates.nodes import col
    >>> from hedgerow.core.predicates.types import Type
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([10, 20, 20, 30])}, entry=[0, 0, 1, 1], entries=2)
    >>> bounds = key_bounds([stats], TypedTerm(col("x"), Type("int")))
    >>> list(bounds.values), bounds.first.tolist(), bounds.last.tolist()
    ([10, 20, 30], [1, 3], [3, 5])
    """
    stats = key.across(parts) if key.type.kind in _KINDS else None
    if stats is None:
        return None
    sets = stats.sets or DistinctSets.build([None] * len(stats.low))
    listed = np.append(np.diff(sets.offsets) / max(1, len(stats.values)), 1)[sets.set_of]  # an unknown set is number -1
    shares = np.minimum(_shares(stats), listed)
    return KeyBounds(stats.values, stats.low, stats.high, sets) if shares.size and shares.mean() <= _MAX_SHARE else None


def _shares(stats: TermStats) -> npt.NDArray[np.float64]:
    """Return for each file the share of files that may hold the key in the middle of its bounds."""
    first, last = stats.low[stats.has_value], stats.high[stats.has_value]
    middle = (stats.low + stats.high) // 2
    holding = np.searchsorted(np.sort(first), middle, "right") - np.searchsorted(np.sort(last), middle, "left")
    return np.where(stats.has_value, holding / max(1, len(stats.low)), 0.0)
