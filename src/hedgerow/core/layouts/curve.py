"""Rows in the order of a space-filling curve, cut into blocks: range, Z-order with any split of bits, snake, Hilbert.

Sorted edges turn each term's values into ranks. `pattern` lists the term of each bit of the key, most significant
first: all bits of one term before those of the next are a sort; terms in turn are a Z-order.

    x = 10 (binary), y = 01, pattern x y x y      key 1 0 0 1

Z-order jumps back at the end of a line. A snake turns round instead: its next block begins beside the end of the last.

    pattern x y y    Z   x=0: y 0 1 2 3  x=1: y 0 1 2 3        snake   x=0: y 0 1 2 3  x=1: y 3 2 1 0

The row groups of a `GroupLayout` may be one more axis, with the block numbers as ranks: SOP + Z-order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Ints
from hedgerow.core.layouts.base import BlockIds, Let, Write, in_brackets
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.predicates.nodes import Feature, Literal, Term
from hedgerow.core.predicates.sql_text import feature_text, literal_text, term_text
from hedgerow.core.predicates.types import BINARY, BOOLEAN, DECIMAL, FLOAT, STRING
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.pruning.value_codes import NAN_CODE, NULL_CODE

Keys = npt.NDArray[np.uint64]
MAX_SQL_EDGES = 4000  # edges in one CASE: a longer CASE is slower than Python
MAX_SQL_BITS = 62  # bits of a key: it has to fit a BIGINT, with one bit to spare


@dataclass(frozen=True)
class Axis:
    """A term and its sorted edges: the rank of a value is the number of edges at or below it.

    NULL has rank 0. NaN is above all values, so it has the last rank.
    """

    term: Term
    kind: str
    edges: tuple[Value, ...]

    @property
    def features(self) -> tuple[Feature, ...]:
        return (self.term,)

    @property
    def bits(self) -> int:
        return max(1, len(self.edges).bit_length())

    def ranks(self, rows: Rows) -> Keys:
        column = rows.ranks(self.term)
        rank_of_code = np.zeros(len(column.values) + 2, np.uint64)
        rank_of_code[: len(column.values)] = _at_or_below(self.kind, self.edges, column.values)
        rank_of_code[NULL_CODE] = 0
        rank_of_code[NAN_CODE] = len(self.edges)
        return rank_of_code[column.places]

    def reaches(self, rank: int, write: Write) -> str:
        """Return the SQL condition that the value has at least this rank."""
        if not 0 < rank <= len(self.edges):
            return "TRUE" if rank <= 0 else "FALSE"
        return f"{write(self.term)} >= {literal_text(Literal(self.kind, self.edges[rank - 1]))}"


@dataclass(frozen=True)
class BlockAxis:
    """Row groups as an axis: a row's rank is its block in the layout of groups."""

    layout: GroupLayout

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.layout.features

    @property
    def bits(self) -> int:
        return max(1, (self.layout.blocks - 1).bit_length())

    def ranks(self, rows: Rows) -> Keys:
        return self.layout.assign(rows).astype(np.uint64)


def _at_or_below(kind: str, edges: Sequence[Value], values: Sequence[Value]) -> npt.ArrayLike:
    """Return for each value the number of edges at or below it."""
    if kind not in (DECIMAL, STRING, BINARY, BOOLEAN):
        dtype = np.float64 if kind == FLOAT else np.int64
        with suppress(OverflowError):  # a whole number may exceed 64 bits
            return np.searchsorted(np.array(edges, dtype), np.array(values, dtype), side="right")
    return [bisect_right(edges, v) for v in values]


@dataclass(frozen=True)
class CurveLayout:
    """A curve cut into blocks: `bounds[i]` is the first key of block i + 1.

    `curve` is "bits" (Z-order), "snake" or "hilbert"; for "hilbert" every axis has as many bits as the widest.
    """

    kind: ClassVar[str] = "curve"
    axes: tuple[Axis | BlockAxis, ...]
    pattern: tuple[int, ...]
    bounds: tuple[int, ...]
    curve: str = "bits"

    @property
    def features(self) -> tuple[Feature, ...]:
        return tuple(dict.fromkeys(feature for axis in self.axes for feature in axis.features))

    @property
    def blocks(self) -> int:
        return len(self.bounds) + 1

    def keys(self, rows: Rows) -> Keys:
        return keys_of([axis.ranks(rows) for axis in self.axes], [a.bits for a in self.axes], self.pattern, self.curve)

    def assign(self, rows: Rows) -> BlockIds:
        if not self.axes:
            return np.zeros(len(rows), np.int32)
        return np.searchsorted(np.array(self.bounds, np.uint64), self.keys(rows), side="right").astype(np.int32)

    def assign_sql(self, write: Write = feature_text, let: Let = in_brackets) -> str | None:
        """Return the search for a row's block as CASE WHEN; None if its SQL would be too long."""
        if not self.axes:
            return "0"
        blocks = [str(block) for block in range(self.blocks)]
        axes = self._term_axes
        if self.curve != "hilbert" and len(axes) == 1:  # each block is a range of values, so no key is needed
            unused_bits = axes[0].bits - len(self.pattern)  # low bits of the rank that the key leaves out
            starts = [bound << unused_bits if unused_bits >= 0 else -(-bound >> -unused_bits) for bound in self.bounds]
            return _binary_search([axes[0].reaches(start, write) for start in starts], blocks)
        key_sql = self._interleaved_sql(write)
        if key_sql is None:
            return None
        key = let(key_sql)
        return _binary_search([f"{key} >= {bound}" for bound in self.bounds], blocks)

    def key_sql(self) -> str | None:
        """Return the SQL expression that sorts rows along the curve; None if it would be too long."""
        axes = self._term_axes
        return term_text(axes[0].term) if len(axes) == 1 else self._interleaved_sql(feature_text)

    @property
    def _term_axes(self) -> list[Axis]:
        """The axes if all of them are terms, which have a short SQL text; else the empty list."""
        term_axes = [axis for axis in self.axes if isinstance(axis, Axis)]
        return term_axes if len(term_axes) == len(self.axes) else []

    def _interleaved_sql(self, write: Write) -> str | None:
        """Return the SQL text of the key; None for a Hilbert curve, or if the text would be too long.

        Each axis gives one part. The key is the sum of the parts, or their XOR if the curve is a snake.
        """
        axes = self._term_axes
        if self.curve == "hilbert" or not axes or len(self.pattern) > MAX_SQL_BITS:
            return None
        if sum(len(axis.edges) for axis in axes) > MAX_SQL_EDGES:
            return None
        return (" ^ " if self.curve == "snake" else " + ").join(
            _binary_search([a.reaches(r, write) for r in range(1, len(a.edges) + 1)], self._key_parts(i))
            for i, a in enumerate(axes)
        )

    def _key_parts(self, i: int) -> list[str]:
        """Return for each rank of axis i its bits at their places in the key; for a snake, also the flipped bits."""
        axes = self._term_axes
        ranks = [np.arange(len(a.edges) + 1 if i == k else 1, dtype=np.uint64) for k, a in enumerate(axes)]
        ranks = [r if i == k else np.zeros(len(ranks[i]), np.uint64) for k, r in enumerate(ranks)]
        return [f"{key}L" for key in keys_of(ranks, [a.bits for a in axes], self.pattern, self.curve)]


def _binary_search(reached: Sequence[str], results: Sequence[str]) -> str:
    """Return a CASE with the value `results[n]` if exactly the first n conditions are TRUE; NULL counts as FALSE."""

    def between(first: int, last: int) -> str:
        if first == last:
            return results[first]
        middle = (first + last + 1) // 2
        return f"CASE WHEN {reached[middle - 1]} THEN {between(middle, last)} ELSE {between(first, middle - 1)} END"

    return between(0, len(reached))


def keys_of(ranks: Sequence[Keys], bits: Sequence[int], pattern: Sequence[int], curve: str = "bits") -> Keys:
    """Return one key for each row. A term with more bits than the pattern has for it contributes its highest bits.

    >>> keys_of([np.array([2], np.uint64), np.array([1], np.uint64)], [2, 2], (0, 1, 0, 1)).tolist()
    [9]
    """
    from hedgerow.core.layouts.curve_kernels import spread  # numba takes long to load, and queries do not need it

    if curve == "hilbert":
        bits = [max(bits)] * len(bits)
        ranks = _hilbert(ranks, bits[0])
    keys = np.zeros(len(ranks[0]), np.uint64)
    for axis_ranks, places in zip(ranks, places_of(bits, pattern), strict=True):
        spread(axis_ranks, places, keys)
    return turned(keys, pattern) if curve == "snake" else keys


def turned(keys: Keys, pattern: Sequence[int]) -> Keys:
    """Convert keys of Z-order to keys of a snake.

    Adjacent bits of one term are one step. After an odd step the next runs backwards: the last bit of a step flips all
    lower bits.

    >>> turned(np.arange(8, dtype=np.uint64), (0, 1, 1)).tolist()
    [0, 1, 2, 3, 7, 6, 5, 4]
    """
    n = len(pattern)
    turns = sum(1 << (n - 1 - at) for at in range(n - 1) if pattern[at] != pattern[at + 1])
    flips = keys & np.uint64(turns)
    for step in (1, 2, 4, 8, 16, 32):
        flips ^= flips >> np.uint64(step)
    return keys ^ (flips >> np.uint64(1))


def places_of(bits: Sequence[int], pattern: Sequence[int]) -> list[Ints]:
    """Return for each term the places of its bits in the key, lowest bit first; -1 for bits not in the pattern.

    >>> [places.tolist() for places in places_of([2, 3], (0, 1, 0, 1))]
    [[1, 3], [-1, 0, 2]]
    """
    places = [np.full(n, -1) for n in bits]
    bits_left = list(bits)
    for place, term in zip(range(len(pattern) - 1, -1, -1), pattern, strict=True):
        bits_left[term] -= 1
        if bits_left[term] >= 0:
            places[term][bits_left[term]] = place
    return places


def _hilbert(ranks: Sequence[Keys], bits: int) -> list[Keys]:
    """Turn coordinates so that interleaving their bits gives the place on the Hilbert curve (after Skilling, 2004).

    From the highest bit down: where a coordinate's bit is set, invert the low bits of the first coordinate; else
    exchange the low bits of the two. A Gray code then undoes the remaining reflections.
    """
    x = [r.copy() for r in ranks]
    first_bit = np.uint64(1)
    for level in range(bits - 1, 0, -1):
        bit, low = first_bit << np.uint64(level), (first_bit << np.uint64(level)) - first_bit
        for i in range(len(x)):
            is_set = (x[i] & bit) > 0
            swap = np.where(is_set, np.uint64(0), (x[0] ^ x[i]) & low)
            x[0] = np.where(is_set, x[0] ^ low, x[0] ^ swap)
            x[i] = x[i] ^ swap if i else x[i]
    for i in range(1, len(x)):
        x[i] = x[i] ^ x[i - 1]
    flip = np.zeros(len(x[0]), np.uint64)
    for level in range(bits - 1, 0, -1):
        bit = first_bit << np.uint64(level)
        flip = np.where((x[-1] & bit) > 0, flip ^ (bit - first_bit), flip)
    return [c ^ flip for c in x]


def edges_of(values: Sequence[Value], counts: Ints, limit: int) -> tuple[Value, ...]:
    """Return at most `limit` edges that split sorted distinct values into runs of about equal row counts."""
    if len(values) - 1 <= limit:
        return tuple(values[1:])
    ends = np.cumsum(counts)
    targets = ends[-1] * np.arange(1, limit + 1) / (limit + 1)
    places = np.unique(np.searchsorted(ends, targets, side="left") + 1)
    return tuple(values[p] for p in places.tolist() if p < len(values))
