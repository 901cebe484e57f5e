"""Values as odd codes, gaps as even ones: what is sure of a bound that lies in a gap."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hedgerow.core.pruning.value_codes import (
    NAN_CODE,
    NULL_CODE,
    ArrowValues,
    code_of,
    merge_values,
    rank_rows,
    recode_tables,
    thresholds,
)

LETTERS = ["b", "f", "k"]  # codes  0 b1 2 f3 4 k5 6


@pytest.mark.parametrize(
    ("value", "gap", "code"),
    [("a", 0, 0), ("b", 0, 1), ("c", 0, 2), ("f", 0, 3), ("z", 0, 6), ("f", -1, 2), ("f", 1, 4), ("c", 1, 2)],
)
def test_codes(value: str, gap: int, code: int) -> None:
    assert code_of(LETTERS, value, gap) == code


def test_a_break_inside_a_gap_is_sure_from_the_next_value_on() -> None:
    """x < 'd' splits gap 2: a minimum in this gap may lie before 'd', a maximum in it may lie behind."""
    low, high = thresholds(LETTERS, [("d", 0)])
    assert (low.tolist(), high.tolist()) == ([3], [2])


def test_a_break_at_a_known_value_is_exact() -> None:
    low, high = thresholds(LETTERS, [("f", 0), ("f", 1)])
    assert low.tolist() == high.tolist() == [3, 4]


def test_a_gap_widens_when_new_values_fall_into_it() -> None:
    """Above b, below f (gap 2): with d known, too, a lower bound there may be c and an upper bound may be e."""
    merged, (places, _) = merge_values([LETTERS, ["d"]])
    assert merged == ["b", "d", "f", "k"]
    low, high = recode_tables(places, len(merged))
    assert (low[2], high[2]) == (2, 4)
    assert (low[3], high[3]) == (5, 5)  # f itself stays exact
    assert (low[0], high[6]) == (0, 8)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["k", None, "b", "k"]),
        pa.chunked_array([["k", None], [], ["b", "k"]]),
        pa.array(["k", None, "b", "k"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 2], pa.int8()), pa.array(["b", None, "k"])),
        pa.array(["k", None, "b", "k"], pa.large_string()),
    ],
    ids=lambda a: str(a.type),
)
def test_rows_by_rank(array: pa.Array | pa.ChunkedArray) -> None:
    found = rank_rows(array)
    assert found.values == ["b", "k"]
    assert found.places.tolist() == [1, NULL_CODE, 0, 1]


def test_nan_and_both_zeros() -> None:
    found = rank_rows(pa.array([float("nan"), -0.0, 0.0, None, 1.0]))
    assert found.values == [0.0, 1.0]
    assert found.places.tolist() == [NAN_CODE, 0, 0, NULL_CODE, 1]


def test_a_dictionary_as_big_as_its_index_type() -> None:
    words = [f"{i:03d}" for i in range(128)]
    full = pa.DictionaryArray.from_arrays(pa.array(range(128), pa.int8()), pa.array(words))
    assert rank_rows(full).places.tolist() == list(range(128))


def test_no_rows() -> None:
    assert rank_rows(pa.chunked_array([], pa.int64())).places.tolist() == []


@pytest.mark.parametrize(
    "value",
    [
        lambda n: n,
        lambda n: n / 3,
        lambda n: f"{n:06d}é",
        lambda n: f"{n:06d}".encode(),
        lambda n: Decimal(n).scaleb(-(n % 4)),
        lambda n: 2**63 + n,
    ],
    ids=["int", "float", "string", "binary", "decimal", "beyond bigint"],
)
def test_many_values_are_merged_like_few(value: Callable[[int], Any]) -> None:
    lists = [sorted({value(n) for n in range(start, 3000, step)}) for start, step in ((0, 2), (1, 3), (2999, 1))]
    merged, places = merge_values([lists[0], *(_as_arrow(values) for values in lists[1:])])
    assert list(merged) == sorted({v for values in lists for v in values})
    assert all([merged[i] for i in at] == values for at, values in zip(places, lists, strict=True))


def _as_arrow(values: list[Any]) -> Any:
    try:
        return ArrowValues(pa.array(values))
    except OverflowError:
        return values
