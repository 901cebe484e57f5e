"""The filters of look-ups: blocked Bloom filters that say which files cannot hold a value.

A file's filter has some blocks; a block has some words of 64 bits. A value sets one bit in each word of one block:

    h = xxhash64(value)        block     upper half of h, scaled to the number of blocks
                               bit       in word i, the upper 6 bits of (lower half of h) x SALTS[i]
    block 17 of a file         0010..0   0000..1   1000..0     a file without one of the bits does not hold the value

All files of a write have equally many blocks, so a look-up reads block 17 of all files, which lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.predicates.values import Value

WORD_BITS, MAX_WORDS = 64, 8
FILE_BYTES = 4  # of the number that says whose block it is
# Odd numbers below 2 ** 31, so that Spark multiplies without an overflow.
SALTS = (
    *(0x47B6137B, 0x44974D91, 0x0824AD5B, 0x22B7289D),
    *(0x705495C7, 0x2DF1424B, 0x1EFC4947, 0x5C6BFB31),
)
MAX_BITS = 10  # stored for each value of a file; more would hardly open fewer files
MIN_FILE_BYTES = 64  # also a file of few values may have a whole block
MAX_FALSE_POSITIVES = 0.3  # a filter with more of them is not worth its bytes


class ValueFilter(Protocol):
    """The filters of one column for the entries of an index."""

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        """Return for each entry whether it may hold one of these values of a kind; True where that is not known."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The number of blocks in the filter of each file, and of words in a block."""

    blocks: int
    words: int

    @property
    def block_bytes(self) -> int:
        """The bytes of a block as it is stored."""
        return FILE_BYTES + self.words * WORD_BITS // 8

    def block(self, h: int) -> int:
        """Return the number of the block of a hash."""
        return (h >> 32) * self.blocks >> 32

    def masks(self, h: int) -> list[int]:
        """Return the bit of a hash in each word of its block."""
        return [1 << ((h & 0xFFFFFFFF) * salt >> 26 & 63) for salt in SALTS[: self.words]]

    def stored_bytes(self, values: Ints) -> float:
        """Return about the bytes of the filters of files with so many values; blocks without a value are not stored."""
        filled = self.blocks * -np.expm1(-values / self.blocks)
        return float(filled.sum()) * self.block_bytes

    def false_positives(self, values: Ints) -> float:
        """Return the mean share of files, of those without a value, that are opened for it.

        A block gets a Poisson-distributed number n of values. Each word then has the value's bit with probability
        1 - q ** n, where q = 63/64, and the mean of (1 - q ** n) ** words over n is this sum.
        """
        load: Floats = values / self.blocks
        q = 1 - 1 / WORD_BITS
        terms = (comb(self.words, j) * (-1) ** j * np.exp(-load * (1 - q**j)) for j in range(self.words + 1))
        return float(np.mean(sum(terms))) if len(values) else 0.0


def best_shape(values: Ints, max_bytes: float) -> Shape | None:
    """Return the shape with the fewest false positives for files with so many values; None if it has too many.

    >>> best_shape(np.array([1_000_000] * 20), 25e6)
    Shape(blocks=20833, words=7)
    >>> best_shape(np.array([1_000_000] * 20), 2e6) is None
    True
    """
    max_bytes = min(max_bytes, float(values.sum()) * MAX_BITS / 8 + len(values) * MIN_FILE_BYTES)
    shapes = [shape for words in range(1, MAX_WORDS + 1) if (shape := _largest(values, words, max_bytes)) is not None]
    best = min(shapes, key=lambda shape: shape.false_positives(values), default=None)
    return best if best is not None and best.false_positives(values) <= MAX_FALSE_POSITIVES else None


def _largest(values: Ints, words: int, max_bytes: float) -> Shape | None:
    """Return the shape with the most blocks that fits into so many bytes; None if not even one block does."""
    low, high = 0, int(values.max(initial=1))
    while low < high:
        middle = (low + high + 1) // 2
        if Shape(middle, words).stored_bytes(values) <= max_bytes:
            low = middle
        else:
            high = middle - 1
    return Shape(low, words) if low else None
