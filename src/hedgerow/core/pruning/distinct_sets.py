"""The set of values of each entry that has few of them; equal sets are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.pruning.value_codes import Codes

UNKNOWN_SET = -1


@dataclass(frozen=True)
class DistinctSets:
    """Small sets of values, each stored once: entry i has the values `codes[offsets[k]:offsets[k + 1]]`, where k is
    `set_of[i]` (or UNKNOWN_SET). The codes are those of `value_codes`, and odd."""

    set_of: Codes
    offsets: Ints
    codes: Codes

    def of(self, entry: int) -> Codes | None:
        k = self.set_of[entry]
        return None if k == UNKNOWN_SET else self.codes[self.offsets[k] : self.offsets[k + 1]]

    def may_hold(self, codes: Sequence[int]) -> Bools:
        """Return for each entry whether it may have any of these values."""
        hits = np.append(np.isin(self.codes, codes), False)  # so that an empty set at the end has a place, too
        starts, ends = self.offsets[:-1], self.offsets[1:]
        holds = np.add.reduceat(hits, starts, dtype=np.int64) > 0 if len(starts) else np.zeros(0, bool)
        holds &= starts < ends
        return np.append(holds, True)[self.set_of]  # an unknown set is number -1

    @staticmethod
    def build(sets: Sequence[tuple[int, ...] | None]) -> DistinctSets:
        numbers: dict[tuple[int, ...], int] = {}
        set_of = [UNKNOWN_SET if s is None else numbers.setdefault(s, len(numbers)) for s in sets]
        offsets = np.cumsum([0, *map(len, numbers)], dtype=np.int64)
        codes = np.fromiter((c for s in numbers for c in s), np.int32, int(offsets[-1]))
        return DistinctSets(np.array(set_of, np.int32).reshape(-1), offsets, codes)

    @staticmethod
    def concat(parts: Sequence[tuple[DistinctSets | None, int]]) -> DistinctSets | None:
        """Return the sets of all parts, each with its number of entries; None if no part has any."""
        numbers: dict[bytes, int] = {}
        set_of = []
        for sets, entries in parts:
            if sets is None:
                set_of.append(np.full(entries, UNKNOWN_SET, np.int32))
                continue
            codes, ends = sets.codes.astype(np.int32, copy=False), sets.offsets.tolist()
            texts = [codes[start:end].tobytes() for start, end in pairwise(ends)]
            new = [numbers.setdefault(text, len(numbers)) for text in texts]
            set_of.append(np.array([*new, UNKNOWN_SET], np.int32)[sets.set_of])
        if not numbers:
            return None
        each = [np.frombuffer(text, np.int32) for text in numbers]
        return DistinctSets(
            np.concatenate(set_of), np.cumsum([0, *map(len, each)], dtype=np.int64), np.concatenate(each)
        )

    def recoded(self, table: Codes) -> DistinctSets:
        return replace(self, codes=table[self.codes])
