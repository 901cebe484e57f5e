"""The bounds of keys: which files may hold a key, compared with the bounds of each file themselves."""

from __future__ import annotations

from bisect import bisect_left

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.index.key_bounds import KeyBounds, key_bounds
from hedgerow.core.index.whole_matches import TypedTerm
from hedgerow.core.predicates.nodes import col
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import UNBOUNDED, Bound, Stats, TermStats, collect

X = TypedTerm(col("x"), Type("int"))


def may_hold(bounds: KeyBounds, key: object) -> list[bool]:
    at = bisect_left(bounds.values, key)  # type: ignore[type-var]
    place = 2 * at + (at < len(bounds.values) and bounds.values[at] == key)
    within = [first <= place <= last for first, last in zip(bounds.first.tolist(), bounds.last.tolist(), strict=True)]
    sets = [bounds.sets.of(file) for file in range(len(within))]
    return [may if places is None else place in places.tolist() for may, places in zip(within, sets, strict=True)]


@given(
    st.lists(st.lists(st.none() | st.integers(-5, 20)), min_size=1, max_size=6),
    st.integers(-7, 22),
    st.sampled_from([0, 2, 64]),
)
def test_a_file_may_hold_its_keys_or_those_within_its_bounds(
    files: list[list[int | None]], key: int, most: int
) -> None:
    rows = [(file, x) for file, values in enumerate(files) for x in values]
    column = {col("x"): pa.array([x for _, x in rows], pa.int64())}
    stats = collect(column, entry=[file for file, _ in rows], entries=len(files), max_distinct=most)
    bounds = key_bounds([stats], X)
    if bounds is not None:
        known = [{x for x in values if x is not None} for values in files]
        within = [bool(xs) and min(xs) <= key <= max(xs) for xs in known]
        listed = [bool(most) and len(xs) <= most for xs in known]
        assert may_hold(bounds, key) == [
            key in xs if is_listed else is_within
            for xs, is_listed, is_within in zip(known, listed, within, strict=True)
        ]


def test_unknown_bounds_let_each_file_hold_any_key() -> None:
    assert may_hold(KeyBounds.unknown(3), 5) == [True] * 3


def test_gaps_and_unknown_bounds_are_wide() -> None:
    pairs = [
        (Bound(10, -1), Bound(20, 1)),
        (UNBOUNDED, UNBOUNDED),
        None,
        (Bound(15), Bound(15)),
        (Bound(12), Bound(13)),
    ]
    stats = Stats(pa.array([1] * 5).to_numpy(), {"x": TermStats.build(Type("int"), pairs, [0] * 5)}, {})
    bounds = key_bounds([stats], X)
    assert bounds is not None
    assert may_hold(bounds, 9) == [True, True, False, False, False]
    assert may_hold(bounds, 15) == [True, True, False, True, False]
    assert may_hold(bounds, 99) == [True, True, False, False, False]


@pytest.mark.parametrize("kind", ["float", "boolean", "binary"])
def test_kinds_that_are_no_keys(kind: str) -> None:
    assert key_bounds([], TypedTerm(col("x"), Type(kind))) is None


def test_bounds_by_which_no_file_is_skipped() -> None:
    wide = collect({col("x"): pa.array([1, 9, 1, 9, 1, 9])}, None, [0, 0, 1, 1, 2, 2], 3, max_distinct=0)
    assert key_bounds([wide], X) is None
    spread = [5, 91, 2, 95, 8, 99, 1, 93, 4, 97]  # as of random keys
    random = collect({col("x"): pa.array(spread)}, None, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], 5, max_distinct=0)
    assert key_bounds([random], X) is None
    assert key_bounds([wide], TypedTerm(col("y"), Type("int"))) is None
    assert key_bounds([wide], TypedTerm(col("x"), Type("string"))) is None
