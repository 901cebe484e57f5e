"""Bounds as ranks: every value of a term that statistics mention gets an odd code, every gap an even one.

    values          b         f         k
    codes      0    1    2    3    4    5    6

A value known exactly has its odd code; "anything above f" starts in gap 4; "unknown" spans 0 to 6. Whatever the
type, comparing bounds is comparing small integers, and a literal costs one bisection, not one comparison a block.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.predicates.step_functions import Break
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.predicates.values import Value, comparable

Codes = npt.NDArray[np.int32]
NULL_CODE = -1
NAN_CODE = -2


def code_of(values: Sequence[Value], value: Value, gap: int = 0) -> int:
    """The code of a value, or of the gap just below (-1) or above (1) it; a stranger's code is the gap it lies in."""
    at = bisect_left(values, value)
    found = at < len(values) and values[at] == value
    return 2 * at + 1 + gap if found else 2 * at


def thresholds(values: Sequence[Value], breaks: Sequence[Break]) -> tuple[Codes, Codes]:
    """For each break the least code, as a lower and as an upper bound, that surely (may) lie behind it.

    The two differ where the break falls inside a gap: a lower bound there may still be before the break, an upper
    bound may already be behind it.
    """
    low = np.empty(len(breaks), np.int32)
    high = np.empty(len(breaks), np.int32)
    for i, (value, side) in enumerate(breaks):
        code = code_of(values, value)
        if code % 2:
            low[i] = high[i] = code + side
        else:
            low[i], high[i] = code + 1, code
    return low, high


def moved(old: Sequence[Value], new: Sequence[Value]) -> tuple[Codes, Codes]:
    """Tables from codes over `old` to codes over `new` (a superset), for lower and for upper bounds."""
    place: dict[Any, int] = {v: i for i, v in enumerate(new)}
    odd = np.fromiter((2 * place[v] + 1 for v in old), np.int32, len(old))
    low = np.zeros(2 * len(old) + 1, np.int32)
    high = np.full(2 * len(old) + 1, 2 * len(new), np.int32)
    low[1::2] = high[1::2] = odd
    low[2::2] = odd + 1  # the lowest gap above the value below
    high[0:-1:2] = odd - 1  # the highest gap below the value above
    return low, high


def united(*lists: Sequence[Value]) -> list[Value]:
    """One sorted list of all values."""
    if len(lists) == 2 and list(lists[0]) == list(lists[1]):
        return list(lists[0])
    return sorted(set().union(*lists))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A column of rows by rank: its sorted distinct values, and each row's place among them or NULL_CODE, NAN_CODE."""

    type: Type
    values: list[Value]
    places: Codes

    def take(self, rows: npt.NDArray[np.intp]) -> Ranked:
        return Ranked(self.type, self.values, self.places[rows])


def whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # older pyarrow, no chunks at all
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def rank_rows(array: pa.Array | pa.ChunkedArray) -> Ranked:
    array = whole(array)
    encoded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    found = comparable(encoded.dictionary)
    order = pc.sort_indices(found).to_numpy()  # NaN after the numbers, NULL last
    nan = pc.sum(pc.is_nan(found)).as_py() or 0 if pa.types.is_floating(found.type) else 0
    numbers = len(found) - found.null_count - nan
    values = found.take(order[:numbers])
    is_new = np.ones(numbers, bool)
    is_new[1:] = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    table = np.full(len(found) + 1, NULL_CODE, np.int32)
    table[order[:numbers]] = np.cumsum(is_new) - 1
    table[order[numbers : numbers + nan]] = NAN_CODE
    indices = pc.fill_null(encoded.indices.cast(pa.int64()), len(found)).to_numpy(zero_copy_only=False)
    return Ranked(Type.of_arrow(array.type), values.filter(pa.array(is_new)).to_pylist(), table[indices])


def supported(array_type: pa.DataType) -> bool:
    return Type.of_arrow(array_type).kind != OTHER
