"""Bounds as small integers: every value in a term's statistics has an odd code, every gap between values an even one.

    values          b         f         k
    codes      0    1    2    3    4    5    6

An exact bound has the odd code of its value; "anything above f" starts in gap 4; "unknown" spans 0 to 6. So bounds of
all types are compared as small integers, and a literal needs one bisection instead of one comparison per block.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.predicates.step_functions import Break
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.predicates.values import MAX_DECIMAL_DIGITS, Value, comparable

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


def recode_tables(places: npt.NDArray[np.int32], size: int) -> tuple[Codes, Codes]:
    """Tables from codes over old values to codes over more values: one for lower bounds, one for upper bounds.

    `places`: the place of each old value among the new ones, of which there are `size`."""
    low = np.zeros(2 * len(places) + 1, np.int32)
    high = np.full(2 * len(places) + 1, 2 * size, np.int32)
    low[1::2] = high[1::2] = odd = 2 * places + 1
    low[2::2] = odd + 1  # the lowest gap above the value below
    high[0:-1:2] = odd - 1  # the highest gap below the value above
    return low, high


class ArrowValues(Sequence[Value]):
    """Sorted values that are converted to Python only when they are read: statistics need few of a million."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return self.array[at].to_pylist() if isinstance(at, slice) else self.array[at].as_py()

    def __iter__(self) -> Iterator[Value]:
        return iter(self.array.to_pylist())

    def take(self, places: npt.NDArray[np.intp]) -> list[Value]:
        return list(self.array.take(pa.array(places)).to_pylist())


def listed(array: pa.Array) -> Sequence[Value]:
    """Return sorted values as a list, or as they are if they are many."""
    return ArrowValues(array) if len(array) > MAX_LISTED else array.to_pylist()


def values_at(values: Sequence[Value], places: npt.NDArray[np.intp]) -> Sequence[Value]:
    """Return the values at these places."""
    if isinstance(values, ArrowValues):
        return listed(values.array.take(pa.array(places)))
    return [values[i] for i in places.tolist()]


def merge_values(lists: Sequence[Sequence[Value]]) -> tuple[Sequence[Value], list[npt.NDArray[np.int32]]]:
    """Return all values in one sorted list, without duplicates, and the place in it of each value of each list.

    >>> merge_values([["b", "k"], ["a", "b"]])
    (['a', 'b', 'k'], [array([1, 2], dtype=int32), array([0, 1], dtype=int32)])
    """
    if sum(map(len, lists)) > MAX_LISTED:
        with suppress(pa.ArrowException, ValueError, OverflowError):  # a value may be none that Arrow can hold
            return _merge_arrays(lists)
    are_equal = len(lists) == 2 and lists[0] == lists[1]
    merged = list(lists[0]) if are_equal else sorted(set().union(*lists))
    place_of = {v: i for i, v in enumerate(merged)}
    return merged, [np.fromiter((place_of[v] for v in values), np.int32, len(values)) for values in lists]


def _merge_arrays(lists: Sequence[Sequence[Value]]) -> tuple[Sequence[Value], list[npt.NDArray[np.int32]]]:
    """Do the same as `merge_values` without a Python object for each value."""
    arrays = [values.array if isinstance(values, ArrowValues) else pa.array(list(values)) for values in lists]
    kind = _common_type({array.type for array in arrays if len(array)})
    encoded = pa.chunked_array([array.cast(kind) for array in arrays], kind).combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    places = rank[encoded.indices.to_numpy()]
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    return listed(encoded.dictionary.take(pa.array(order))), np.split(places, ends)


def _common_type(types: Collection[pa.DataType]) -> pa.DataType:
    """Return a type that holds the values of arrays of all these types exactly; ValueError if there is none."""
    if all(map(pa.types.is_decimal, types)):
        scale = max(t.scale for t in types)
        digits = max(t.precision - t.scale for t in types) + scale
        return pa.decimal128(digits, scale) if digits <= MAX_DECIMAL_DIGITS else pa.decimal256(min(digits, 76), scale)
    widened = {
        pa.int64()
        if pa.types.is_integer(t)
        else pa.large_string()
        if pa.types.is_string(t)
        else pa.large_binary()
        if pa.types.is_binary(t)
        else t
        for t in types
    }
    if len(widened) > 1:
        raise ValueError("values of several kinds")
    return widened.pop()


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
    return RankedColumn(Type.of_arrow(array.type), listed(distinct), place_of_entry[indices])


def is_rankable_type(array_type: pa.DataType) -> bool:
    """True if Hedgerow knows the order of the type's values in Spark."""
    return Type.of_arrow(array_type).kind != OTHER
