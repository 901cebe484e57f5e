"""Keys along curves, against references that look at one row and one bit at a time."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.layouts.curve import Axis, CurveLayout, edges_of, keys_of
from hedgerow.core.predicates.nodes import col
from hedgerow.core.pruning.row_batch import Rows

x, y = col("x"), col("y")


def slow_key(ranks: list[int], bits: list[int], pattern: list[int]) -> int:
    """The digits of each rank, most significant first, dealt out as the pattern asks."""
    digits = [list(f"{rank:0{n}b}") for rank, n in zip(ranks, bits, strict=True)]
    return int("".join(digits[term].pop(0) if digits[term] else "0" for term in pattern), 2)


@given(st.data())
def test_keys_equal_the_slow_reference(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(1, 16), min_size=1, max_size=4))
    pattern = data.draw(st.lists(st.sampled_from(range(len(bits))), min_size=1, max_size=64))
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, 2**n - 1) for n in bits)), min_size=1, max_size=5))
    ranks = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    assert keys_of(ranks, bits, pattern).tolist() == [slow_key(list(row), bits, pattern) for row in rows]


def test_all_bits_of_one_term_and_then_all_of_the_next_is_a_sort() -> None:
    points = list(product(range(8), range(4)))
    ranks = [np.array(c, np.uint64) for c in zip(*points, strict=True)]
    keys = keys_of(ranks, [3, 2], [0, 0, 0, 1, 1])
    assert [points[i] for i in np.argsort(keys)] == sorted(points)


@pytest.mark.parametrize(("terms", "bits"), [(1, 4), (2, 1), (2, 5), (3, 1), (3, 3), (4, 2), (5, 2)])
def test_hilbert_visits_every_cell_once_and_never_jumps(terms: int, bits: int) -> None:
    """Neighbours on the curve are neighbours in space: they differ by one step along one term."""
    cells = np.array(list(product(range(1 << bits), repeat=terms)), np.uint64)
    keys = keys_of(list(cells.T), [bits] * terms, list(range(terms)) * bits, "hilbert")
    assert sorted(keys.tolist()) == list(range(len(cells)))
    along = cells[np.argsort(keys)].astype(int)
    assert (np.abs(np.diff(along, axis=0)).sum(axis=1) == 1).all()
    assert along[0].tolist() == [0] * terms


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9))
def test_a_snake_visits_every_cell_once_and_changes_one_term_at_a_time(pattern: list[int]) -> None:
    bits = [pattern.count(term) for term in range(3)]
    cells = np.array(list(product(*(range(1 << n) for n in bits))), np.uint64)
    keys = keys_of(list(cells.T), [max(1, n) for n in bits], pattern, "snake")
    assert sorted(keys.tolist()) == list(range(len(cells)))
    along = cells[np.argsort(keys)].astype(int)
    assert ((np.diff(along, axis=0) != 0).sum(axis=1) == 1).all()


def test_ranks() -> None:
    axis = Axis(x, "float", (1.0, 2.0, float("inf")))
    values = [None, float("-inf"), 0.5, 1.0, 1.5, 2.0, 9.0, float("inf"), float("nan")]
    assert axis.ranks(Rows({x: pa.array(values)})).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert axis.bits == 2


def test_bounds_are_first_keys() -> None:
    axis = Axis(x, "int", tuple(range(1, 16)))
    layout = CurveLayout((axis,), (0, 0, 0, 0), (4, 5, 12))
    ids = layout.assign(Rows({x: pa.array(range(16))}))
    assert ids.tolist() == [0] * 4 + [1] + [2] * 7 + [3] * 4


def test_64_bits_of_key() -> None:
    axis = Axis(x, "int", tuple(range(1, 2)))
    bound = 2**64 - 1
    layout = CurveLayout((axis,), (0,) * 64, (1, 2**63, bound))
    assert layout.assign(Rows({x: pa.array([0, 1])})).tolist() == [0, 2]
    everything = keys_of([np.array([2**64 - 1], np.uint64)], [64], [0] * 64)
    assert everything.tolist() == [bound]


def test_no_axes_is_one_block() -> None:
    assert CurveLayout((), (), ()).assign(Rows({x: pa.array([1, 2])})).tolist() == [0, 0]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 20))
def test_edges_split_rows_evenly(counts: list[int], most: int) -> None:
    """No rank holds more than its share and the rows of one value, which cannot be parted."""
    values = list(range(len(counts)))
    edges = edges_of(values, np.array(counts), most)
    assert list(edges) == sorted(set(edges))
    assert len(edges) <= most
    assert 0 not in edges, "nothing would lie below the least value"
    ranks = np.searchsorted(edges, values, side="right")
    assert np.bincount(ranks, weights=counts).max() <= sum(counts) / (most + 1) + max(counts)
    if len(values) - 1 <= most:
        assert len(edges) == len(values) - 1, "all values are told apart where there is room"
