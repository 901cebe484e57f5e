"""The factors by which shapes of queries count less the longer they are absent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.pilot.recency import recency_factors, unexpected_seconds

DAYS = st.dictionaries(st.integers(0, 5), st.sets(st.integers(-9, 30), min_size=1), min_size=1)


@given(DAYS)
def test_what_was_asked_on_the_last_day_counts_in_full(days: dict[int, set[int]]) -> None:
    last, found = max(max(own) for own in days.values()), recency_factors(days)
    assert set(found) == set(days) and all(0 < part <= 1 for part in found.values())
    assert all(found[shape] == 1 for shape, own in days.items() if last in own)


@given(DAYS, st.integers(1, 9))
def test_days_without_a_query_do_not_count(days: dict[int, set[int]], pause: int) -> None:
    assert recency_factors({shape: {pause * day for day in own} for shape, own in days.items()}) == recency_factors(
        days
    )


@given(DAYS, st.integers(1, 9))
def test_a_longer_absence_counts_less(days: dict[int, set[int]], more: int) -> None:
    last = max(max(own) for own in days.values())
    before = recency_factors({**days, "always": set(range(-9, last + 1))})
    after = recency_factors({**days, "always": set(range(-9, last + 1 + more))})
    assert all(after[shape] <= before[shape] for shape in days) and after["always"] == 1


def test_a_known_pause_is_no_absence() -> None:
    """Asked on each of five days, then on each of five days a week later: a weekend counts in full, a month does not."""
    daily = {day for day in range(1, 13) if day % 7 not in (6, 0)}
    others = set(range(1, 43))
    assert recency_factors({"daily": daily, "others": {*range(1, 15)}})["daily"] == 1
    assert recency_factors({"daily": daily, "others": others})["daily"] == pytest.approx(0.5 ** (30 / 3 - 1))


COUNTS = st.dictionaries(st.integers(0, 5), st.integers(0, 100), min_size=1)


@given(COUNTS, COUNTS, st.floats(0.1, 1e3))
def test_unexpected_seconds_are_part_of_all(before: dict[int, int], late: dict[int, int], mean: float) -> None:
    seconds = {shape: mean * count for shape, count in late.items()}
    found = unexpected_seconds(before, late, seconds)
    assert 0 <= found <= sum(seconds.values()) * (1 + 1e-9)
    new = sum(seconds[shape] for shape in late if not before.get(shape))
    assert found >= new * (1 - 1e-9)


@given(COUNTS, st.integers(1, 9))
def test_as_many_of_each_as_before_are_expected(before: dict[int, int], times: int) -> None:
    late = {shape: times * count for shape, count in before.items()}
    assert unexpected_seconds(before, late, {shape: 1.0 * count for shape, count in late.items()}) == pytest.approx(
        0, abs=1e-6
    )
