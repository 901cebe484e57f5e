"""The set of values of each entry that has few of them; equal sets are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hedgerow.core.arrays import Bools, Ints, unique_numbers
from hedgerow.core.pruning.value_codes import Codes

UNKNOWN_SET = -1
_AT_ONCE = 1 << 22  # codes; sets are united in pieces, because each entry may have a set of its own


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
    def of_pairs(entry: Ints, code: Ints, is_unknown: Bools, most: int) -> DistinctSets:
        """Return the sets with these codes, of at most so many; the pairs are sorted, and each occurs once."""
        sizes = np.bincount(entry, minlength=len(is_unknown))
        ends = np.cumsum(sizes)
        codes = code.astype(np.int32)
        numbers: dict[bytes, int] = {}
        set_of = np.full(len(is_unknown), UNKNOWN_SET, np.int32)
        for i in np.flatnonzero(~is_unknown & (sizes <= most)).tolist():
            text = codes[ends[i] - sizes[i] : ends[i]].tobytes()
            set_of[i] = numbers.setdefault(text, len(numbers))
        return DistinctSets._of_texts(set_of, list(numbers))

    @staticmethod
    def _of_texts(set_of: Codes, texts: Sequence[bytes]) -> DistinctSets:
        """Return the sets whose codes are these bytes, each once."""
        each = [np.frombuffer(text, np.int32) for text in texts]
        offsets = np.cumsum([0, *map(len, each)], dtype=np.int64)
        return DistinctSets(set_of, offsets, np.concatenate([np.zeros(0, np.int32), *each]))

    def united(self, to: Ints, n: int, most: int) -> DistinctSets:
        """Unite the sets of entries: entry i goes into entry `to[i]` of n. A set of more values is unknown.

        >>> sets = DistinctSets.build([(1, 3), (3, 5), None, (7,)]).united(np.array([0, 0, 1, 2]), 4, 3)
        >>> [None if sets.of(i) is None else sets.of(i).tolist() for i in range(4)]
        [[1, 3, 5], None, [7], []]
        """
        is_unknown = np.zeros(n, bool)
        is_unknown[to[self.set_of == UNKNOWN_SET]] = True
        known = (self.set_of != UNKNOWN_SET) & ~is_unknown[to]
        sizes, width = np.diff(self.offsets), int(self.codes.max(initial=0)) + 1
        sets = max(1, len(sizes))
        owner, number = np.divmod(unique_numbers(to[known] * sets + self.set_of[known], n * sets), sets)
        codes_before = np.cumsum(sizes[number]) - sizes[number]
        firsts = np.flatnonzero(np.diff(owner, prepend=-1))
        cuts = firsts[np.flatnonzero(np.diff(codes_before[firsts] // _AT_ONCE, prepend=0))].tolist()
        pairs = [np.zeros(0, np.int64)]
        for start, end in pairwise([0, *cuts, len(owner)]):
            codes, counts = self.codes_of(number[start:end])
            numbered = np.repeat(owner[start:end], counts) * width + codes
            pairs.append(unique_numbers(numbered.astype(np.int64, copy=False), n * width))
        return DistinctSets.of_pairs(*np.divmod(np.concatenate(pairs), width), is_unknown, most)

    def codes_of(self, numbers: Ints) -> tuple[Codes, Ints]:
        """Return the codes of these sets, one set after the other, and how many codes each has."""
        starts, counts = self.offsets[numbers], self.offsets[numbers + 1] - self.offsets[numbers]
        ends = np.cumsum(counts)
        return self.codes[np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)], counts

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
        return DistinctSets._of_texts(np.concatenate(set_of), list(numbers))

    def recoded(self, table: Codes) -> DistinctSets:
        return replace(self, codes=table[self.codes])
