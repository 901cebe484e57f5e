"""Truth: whether each cut is TRUE on each row of the sample, as bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Ints

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Truth:
    """A mask of cuts x rows. It is large, so masks are unpacked where they are needed.

    `words`: the mask of each cut, as `pack` packs it.
    """

    words: Words
    rows: int

    @staticmethod
    def joined(words: Sequence[Words], rows: int) -> Truth:
        """Return the masks of some cuts, each of them packed."""
        return Truth(np.array(words, np.uint64).reshape(len(words), -(-rows // 64)), rows)

    def __getitem__(self, cuts: Sequence[int] | Ints | slice) -> Bools:
        """Return the masks of these cuts."""
        bits = self.words[cuts].view(np.uint8)
        return np.unpackbits(bits, axis=1, count=self.rows, bitorder="little").view(bool)

    def of_cut(self, cut: int) -> Bools:
        mask: Bools = self[[cut]][0]
        return mask

    @property
    def counts(self) -> Ints:
        """The number of rows on which each cut is TRUE."""
        return count(self.words)

    def thinned(self, step: int) -> Truth:
        """Return the masks of every so many rows."""
        masks = [pack(self.of_cut(cut)[None, ::step])[0] for cut in range(len(self.words))]
        return Truth.joined(masks, -(-self.rows // step))


def pack(masks: Bools) -> Words:
    """Pack masks of rows into 64-bit words; a word has the bits of 64 rows of one mask."""
    cuts, rows = masks.shape
    packed = np.zeros((cuts, -(-rows // 64) * 8), np.uint8)
    packed[:, : -(-rows // 8)] = np.packbits(masks, axis=1, bitorder="little")
    return packed.view(np.uint64)


def count(words: Words) -> Ints:
    """Return the number of set bits in each mask."""
    counts: Ints = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return counts
