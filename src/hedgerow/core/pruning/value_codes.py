"""Bounds as small integers: every value in a term's statistics has an odd code, every gap between values an even one.

    values          b         f         k
    codes      0    1    2    3    4    5    6

An exact bound has the odd code of its value; "anything above f" starts in gap 4; "unknown" spans 0 to 6. So bounds of
all types are compared as small integers, and a literal needs one bisection instead of one comparison per block.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
MAX_LISTED = 1_000  # values of a column that are converted to Python at once


def code_of(values: Sequence[Value], value: Value, gap: int = 0) -> int:
    """Return the code of a value, or of the gap just below (-1) or above (1); an unlisted value has its gap's code."""
    at = bisect_left(values, value)
    is_listed = at < len(values) and values[at] == value
    return 2 * at + 1 + gap if is_listed else 2 * at


def thresholds(values: Sequence[Value], breaks: Sequence[Break]) -> tuple[Codes, Codes]:
    """Return for each break the least code of a lower bound that is surely above it, and of an upper bound that may be.

    The two differ if the break falls inside a gap: a lower bound in that gap may still lie below the break, and an
    upper bound may already lie above it.
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


def recode_tables(
    old: Sequence[Value], new: Sequence[Value], places: Mapping[Any, int] | None = None
) -> tuple[Codes, Codes]:
    """Tables from codes over `old` to codes over its superset `new`: one for lower bounds, one for upper bounds.

    `places`: the place of each new value, for callers with many tables over the same ones."""
    index = places_of(new) if places is None else places
    odd = np.fromiter((2 * index[v] + 1 for v in old), np.int32, len(old))
    low = np.zeros(2 * len(old) + 1, np.int32)
    high = np.full(2 * len(old) + 1, 2 * len(new), np.int32)
    low[1::2] = high[1::2] = odd
    low[2::2] = odd + 1  # the lowest gap above the value below
    high[0:-1:2] = odd - 1  # the highest gap below the value above
    return low, high


def places_of(values: Sequence[Value]) -> dict[Any, int]:
    """Return the place of each value."""
    return {v: i for i, v in enumerate(values)}


def merge_values(*lists: Sequence[Value]) -> list[Value]:
    """Return all values in one sorted list, without duplicates."""
    if len(lists) == 2 and list(lists[0]) == list(lists[1]):
        return list(lists[0])
    return sorted(set().union(*lists))


class ArrowValues(Sequence[Value]):
    """Sorted values that are converted to Python only when they are read: statistics need few of a million."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, at: Any) -> Any:
        return self._array[at].to_pylist() if isinstance(at, slice) else self._array[at].as_py()

    def __iter__(self) -> Iterator[Value]:
        return iter(self._listed)

    @cached_property
    def _listed(self) -> list[Value]:
        return list(self._array.to_pylist())

    def take(self, places: npt.NDArray[np.intp]) -> list[Value]:
        return list(self._array.take(pa.array(places)).to_pylist())


@dataclass(frozen=True, slots=True)
class RankedColumn:
    """A column as its sorted distinct values and, for each row, the place of its value, NULL_CODE or NAN_CODE."""

    type: Type
    values: Sequence[Value]
    places: Codes

    def take(self, rows: npt.NDArray[np.intp]) -> RankedColumn:
        return RankedColumn(self.type, self.values, self.places[rows])


def one_chunk(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the array in one contiguous piece."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # older pyarrow, for an array without chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def rank_rows(array: pa.Array | pa.ChunkedArray) -> RankedColumn:
    """Rank the rows of a column; equal values have equal places, even if Arrow's own dictionary repeats a value."""
    array = one_chunk(array)
    encoded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
    entries = comparable(encoded.dictionary)
    order = pc.sort_indices(entries).to_numpy()  # NaN after the other values, NULL last
    nans = pc.sum(pc.is_nan(entries)).as_py() or 0 if pa.types.is_floating(entries.type) else 0
    count = len(entries) - entries.null_count - nans
    values = entries.take(order[:count])
    is_new = np.ones(count, bool)
    is_new[1:] = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    place_of_entry = np.full(len(entries) + 1, NULL_CODE, np.int32)
    place_of_entry[order[:count]] = np.cumsum(is_new) - 1
    place_of_entry[order[count : count + nans]] = NAN_CODE
    indices = pc.fill_null(encoded.indices.cast(pa.int64()), len(entries)).to_numpy(zero_copy_only=False)
    distinct = values.filter(pa.array(is_new))
    listed = ArrowValues(distinct) if len(distinct) > MAX_LISTED else distinct.to_pylist()
    return RankedColumn(Type.of_arrow(array.type), listed, place_of_entry[indices])


def is_rankable_type(array_type: pa.DataType) -> bool:
    """True if Hedgerow knows the order of the type's values in Spark."""
    return Type.of_arrow(array_type).kind != OTHER
