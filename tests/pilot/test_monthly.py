"""Shapes that come on certain days of the month weigh as much as the coming days will bring."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.pilot.monthly import monthly_factors


def day_of(number: int) -> int:
    return (date(1970, 1, 1) + timedelta(number)).day


@given(st.integers(1, 28), st.integers(0, 400), st.integers(93, 400), st.integers(1, 300))
def test_a_report_of_each_month(day: int, first: int, length: int, times: int) -> None:
    """Its weight is that of the coming reports, by the calendar itself."""
    last = first + length
    days = [number for number in range(first, last + 1) if day_of(number) == day]
    report = {number: float(times) for number in days}
    daily = {number: 20.0 for number in range(first, last + 1)}
    factors = monthly_factors({"report": report, "daily": daily}, last, 7, 7)
    assert factors["daily"] == 1
    by_age = sum(times * 0.5 ** ((last - number) / 7) for number in days)
    coming = sum(
        times * 0.5 ** ((number - last - 1) / 7) for number in range(last + 1, last + 36) if day_of(number) == day
    )
    assert factors["report"] * by_age == pytest.approx(max(0.01 * by_age, coming), rel=1e-3)


@given(
    st.dictionaries(st.integers(0, 3), st.dictionaries(st.integers(0, 140), st.floats(1, 99), min_size=1), min_size=1),
    st.integers(0, 150),
    st.sampled_from([0.5, 7, 30]),
)
def test_factors_are_positive(counts: dict[int, dict[int, float]], last: int, half_life: float) -> None:
    """Also where a clock went wrong, and days of the log are after its last one."""
    last = max(last, min(min(own) for own in counts.values()))
    factors = monthly_factors(counts, last, half_life, 7)
    assert set(factors) == set(counts) and all(0 < factor < np.inf for factor in factors.values())


def test_a_short_log_proves_nothing() -> None:
    report = {number: 1.0 for number in range(92) if day_of(number) == 1}
    assert monthly_factors({"report": report}, 91, 7, 7) == {"report": 1}


def test_random_days_prove_nothing() -> None:
    def proven(seed: int) -> bool:
        days = np.random.default_rng(seed).choice(150, 20, replace=False)
        return monthly_factors({"some": {int(day): 30.0 for day in days}, "all": {0: 1.0}}, 149, 7, 7)["some"] != 1

    assert sum(map(proven, range(200))) <= 2
