"""The filters of look-ups: sorted keys that say which files may hold a value.

    short hash    xxhash64(value) modulo the number of different short hashes
    key           short hash x number of files + place of the file      for each value of each file
    block         the keys of neighbouring short hashes; a look-up reads one block

    files = 3     short hash 41 in the files 0 and 2, short hash 42 in the file 1:  keys 123, 125, 127

Values with the same short hash share their files, so a look-up may open a file without a match. A block stores the
gaps between its keys, which are small numbers that compress well. Where the gaps are large, the last bytes of each key
are stored as they are, and the rest becomes a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, log2
from typing import Protocol

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.predicates.nodes import And, Column, Compare, In, Literal, Predicate
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.values import Value

BLOCK_KEYS = 1000  # about so many keys are in a block
MIN_BLOCK_BYTES = 16  # of a block without keys
MORE = 255  # a byte of a gap that goes on in the next byte
LEAST_BYTES = 4096  # if all filters of a table may only have fewer bytes, there are none
MAX_FALSE_POSITIVES = 0.3  # a filter with more of them is not worth its bytes
_ENOUGH = 10  # times as many short hashes as keys: a look-up opens a tenth of a file too much
_ENOUGH_OF_APPEND = 1000  # the same for files that are one of many appends
_MAX_GAP = 300  # mean gaps beyond it lose a byte, which is stored as it is
_COMPRESSED = 1.03  # times the entropy of the gaps
Block = tuple[bytes, bytes]  # the gaps of its keys, counted from the first key that it may have; the low bytes
Placed = tuple["Shape", Sequence[Block], Ints]  # a filter with all its blocks, and the new places of its files


class ValueFilter(Protocol):
    """The filters of one column for the entries of an index."""

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        """Return for each entry whether it may hold one of these values of a kind; True where that is not known."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the values of some files become keys and blocks.

    Args:
        hashes: the number of different short hashes.
        files: the number of files.
        block_hashes: so many neighbouring short hashes are in a block.
        low_bytes: so many of the last bytes of a key are stored as they are.
    """

    hashes: int
    files: int
    block_hashes: int
    low_bytes: int

    @property
    def blocks(self) -> int:
        return -(-self.hashes // self.block_hashes)

    def short(self, h: int) -> int:
        """Return the short hash of a hash, an unsigned number of 64 bits; Spark's hashes are signed."""
        return (h - (h >> 63 << 64)) % self.hashes

    def block(self, h: int) -> int:
        """Return the number of the block of a hash."""
        return self.short(h) // self.block_hashes

    @property
    def block_width(self) -> int:
        """The number of different keys that a block may have."""
        return self.block_hashes * self.files

    def keys(self, block: Block) -> Ints:
        """Return the keys of a block, counted from its first possible key."""
        gaps, low = (np.frombuffer(part, np.uint8) for part in block)
        keys = np.cumsum(gaps, dtype=np.int64)[gaps < MORE]
        for byte in low.reshape(len(keys), self.low_bytes).T:
            keys = keys << 8 | byte
        return keys

    def packed(self, keys: Ints) -> Block:
        """Return the block of these sorted keys."""
        gaps = np.diff(keys >> 8 * self.low_bytes, prepend=0)
        size = gaps // MORE + 1
        in_bytes = np.full(size.sum(), MORE, np.uint8)
        in_bytes[np.cumsum(size) - 1] = gaps % MORE
        low = keys[:, None] >> 8 * np.arange(self.low_bytes)[::-1]
        return in_bytes.tobytes(), low.astype(np.uint8).tobytes()

    def places(self, block: Block, h: int) -> Ints:
        """Return the places of the files that may hold a value with this hash."""
        keys, first = self.keys(block), self.short(h) % self.block_hashes * self.files
        start, end = np.searchsorted(keys, (first, first + self.files))
        return keys[start:end] - first

    def stored_bytes(self, values: Ints) -> float:
        """Return about the bytes of the filter of files with so many different values."""
        keys = float((self.hashes * self._filled(values)).sum())
        gap = max(0.0, self.hashes * self.files / max(1.0, keys) - 1) / 256**self.low_bytes
        bits = 8 * self.low_bytes + _COMPRESSED * _entropy(gap)
        return keys * bits / 8 + self.blocks * MIN_BLOCK_BYTES

    def false_positives(self, values: Ints) -> float:
        """Return the mean share of files, of those without a value, that are opened for it."""
        return float(self._filled(values).mean()) if len(values) else 0.0

    def _filled(self, values: Ints) -> Floats:
        """Return for each file the share of the short hashes that one of its values has."""
        return np.asarray(-np.expm1(-values / self.hashes))


def looked_up(predicates: Iterable[Predicate]) -> Iterator[tuple[Column, Sequence[Literal]]]:
    """Yield each column that a condition looks up, with the values."""
    for p in map(normalise, predicates):
        for part in p.children if isinstance(p, And) else (p,):
            match part:
                case Compare(Column() as column, "=", literal):
                    yield column, [literal]
                case In(Column() as column, literals):
                    yield column, literals


def best_shape(values: Ints, max_bytes: float, can_join: bool = False) -> Shape | None:
    """Return the shape with the fewest false positives for files with so many values; None if it has too many.

    `can_join`: the files are one of many appends, whose filters are joined, see `join_filters`. So the number of short
    hashes is a power of two.

    >>> best_shape(np.array([1_000_000] * 20), 25e6)
    Shape(hashes=200000000, files=20, block_hashes=10025, low_bytes=0)
    >>> best_shape(np.array([1_000_000] * 20), 2e6) is None
    True
    """
    low, high = 1, max(1, (_ENOUGH_OF_APPEND if can_join else _ENOUGH) * int(values.sum()))
    if _shape(values, low).stored_bytes(values) > max_bytes:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if _shape(values, middle).stored_bytes(values) <= max_bytes:
            low = middle
        else:
            high = middle - 1
    best = _shape(values, 1 << low.bit_length() - 1 if can_join else low)
    return best if best.false_positives(values) <= MAX_FALSE_POSITIVES else None


def join_filters(filters: Sequence[Placed], files: int) -> tuple[Shape, list[Block], float]:
    """Return several filters as one of so many files: its shape, its blocks, and its false positives.

    A short hash of the joined filter follows from that of any of them: its number of short hashes divides theirs."""
    hashes = gcd(*(shape.hashes for shape, _, _ in filters))
    all_keys = []
    for old, old_blocks, places in filters:
        of_blocks = [old.keys(block) + number * old.block_width for number, block in enumerate(old_blocks)]
        short, place = np.divmod(np.concatenate(of_blocks), old.files)
        all_keys.append(short % hashes * files + places[place])
    keys = np.unique(np.concatenate(all_keys))
    shape = _fitting_shape(hashes, files, len(keys))
    ends = np.searchsorted(keys, np.arange(1, shape.blocks) * shape.block_width)
    blocks = [shape.packed(of_block - i * shape.block_width) for i, of_block in enumerate(np.split(keys, ends))]
    return shape, blocks, len(keys) / (hashes * files)


def _shape(values: Ints, hashes: int) -> Shape:
    plain = Shape(hashes, len(values), 1, 0)
    return _fitting_shape(hashes, len(values), float((hashes * plain._filled(values)).sum()))


def _fitting_shape(hashes: int, files: int, keys: float) -> Shape:
    """Return the shape of a filter with about so many keys."""
    gap, low_bytes = hashes * files / max(1.0, keys), 0
    while gap > _MAX_GAP:
        gap, low_bytes = gap / 256, low_bytes + 1
    return Shape(hashes, files, max(1, min(hashes, round(hashes * BLOCK_KEYS / max(1.0, keys)))), low_bytes)


def _entropy(mean: float) -> float:
    """Return the bits of a gap with this mean, where every number is equally likely to be a key."""
    p = 1 / (mean + 1)
    return -log2(p) - (1 - p) * log2(1 - p) / p if p < 1 else 0.0
