"""Dates that move with the clock: found only where the log proves them, and moved to where they will be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from hedgerow.core.arrays import Floats
from hedgerow.pilot.forecast import Clock, clocks_of, dates_in, moves_with_the_clock
from hedgerow.pipeline.logged import text_shape

EPOCH, DAY = datetime(1970, 1, 1), 86_400e6
HALF_LIFE = 7.0

Dashboard = Callable[[float], list[str]]  # its conditions, as asked at a time in days


def date_at(days: float) -> str:
    return f"DATE '{(EPOCH + timedelta(int(days // 1))).date()}'"


def last_days(lag: int, zone: float) -> Dashboard:
    return lambda at: [f"day >= {date_at(at + zone - lag)} AND kind = 3"]


def range_of_days(lag: int, zone: float) -> Dashboard:
    return lambda at: [f"day BETWEEN {date_at(at + zone - lag)} AND {date_at(at + zone - lag // 2)}"]


def last_hours(lag: int, zone: float) -> Dashboard:
    def conditions(at: float) -> list[str]:
        since = EPOCH + timedelta(minutes=round((at - lag / 24) * 1440))
        return [f"at >= TIMESTAMP '{since}' AND born < DATE '2000-01-01'", "x < 5"]

    return conditions


def since_monday(lag: int, zone: float) -> Dashboard:
    return lambda at: [f"day >= {date_at((at + zone + 3) // 7 * 7 - 3 - lag)}"]  # 1970 began on a Thursday


DASHBOARDS = st.builds(
    lambda kind, lag, hours: kind(lag, hours / 24),
    st.sampled_from([last_days, range_of_days, last_hours, since_monday]),
    st.integers(1, 60),
    st.integers(-12, 14),
)


def logged(asked: Sequence[tuple[float, Dashboard]]) -> list[Row]:
    """Return the different queries."""
    times: dict[tuple[str, ...], list[float]] = {}
    for at, dashboard in asked:
        times.setdefault(tuple(dashboard(at)), []).append(at * DAY)
    return [
        Row(
            conditions=list(text),
            keys=[""] * len(text),
            first=min(at),
            last=max(at),
            days=sorted({int(one // DAY) for one in at}),
        )
        for text, at in times.items()
    ]


def clocks(queries: Sequence[Any]) -> dict[int, Clock]:
    return clocks_of(queries, [text_shape(query.conditions) for query in queries], HALF_LIFE, 7)


@settings(max_examples=60)
@given(DASHBOARDS, st.lists(st.floats(0.0, 0.99), min_size=28, max_size=40), st.integers(20_000, 21_000))
def test_a_moved_query_is_the_dashboard_on_a_coming_day(dashboard: Dashboard, hours: list[float], first: int) -> None:
    """The dashboard itself, asked on the coming days, is the reference."""
    times = [first + day + hour for day, hour in enumerate(hours)]
    queries, now = logged([(at, dashboard) for at in times]), times[-1]
    found = clocks(queries)
    assert len(found) == len(queries)
    for i, query in enumerate(queries):
        for number in range(8):
            coming = list(found[i].coming(query.conditions, query.first / DAY, now, HALF_LIFE, number))
            days = [query.first / DAY + n for n in range(1, 60)]
            expected = [dashboard(at) for at in days if now < at <= now + HALF_LIFE + 1e-6]
            assert coming in (*expected, query.conditions)


def on_day(lag: int, zone: float) -> Dashboard:
    return lambda at: [f"day = {date_at(at + zone - lag)}"]


@pytest.mark.parametrize(
    ("dashboard", "share"),
    [
        (last_days(60, 0.0), 0.93),
        (last_days(14, 0.0), 0.73),
        (last_days(7, 0.0), 0.5),
        (last_days(0, 0.0), 0.0),
        (range_of_days(14, 0.0), 1.0),
        (on_day(1, 0.0), 1 / 7),
        (on_day(7, 0.0), 1.0),
    ],
)
def test_as_many_stay_as_ask_for_rows_to_come(dashboard: Dashboard, share: float) -> None:
    """If one asks for the last 7 days and today, seven are there on the first of 7 coming days, and one on the last."""
    queries = logged([(day + 0.99, dashboard) for day in range(100, 130)])
    found = clocks(queries)
    coming = [
        found[i].coming(query.conditions, query.first / DAY, 129.99, 7, number) != tuple(query.conditions)
        for i, query in enumerate(queries)
        for number in range(40)
    ]
    assert np.mean(coming) == pytest.approx(share, abs=0.06)


def test_dates_that_stay() -> None:
    """Those of a report on one year, also beside a dashboard of the same shape whose dates move."""

    def year(at: float) -> list[str]:
        return ["day >= DATE '2026-01-01' AND kind = 3"]

    assert not clocks(logged([(day, year) for day in range(20_000, 20_040)]))
    queries = logged([(day, asked) for day in range(20_000, 20_040) for asked in (year, last_days(7, 0.0))])
    assert {queries[i].conditions[0] for i in clocks(queries)} == {
        query.conditions[0] for query in queries if "2026" not in query.conditions[0]
    }
    keyed = [Row(**{**query.asDict(), "keys": ["day > DATE '2026-01-01'"]}) for query in queries]
    assert not clocks(keyed)


@pytest.mark.parametrize("days", [6, 14, 40])
def test_random_dates_prove_nothing(days: int) -> None:
    def proven(seed: int) -> bool:
        r = np.random.default_rng(seed)
        asked: Floats = np.repeat(np.arange(days), 4) + r.random(4 * days)
        return moves_with_the_clock(asked, r.integers(0, 60, (4 * days, 1)).astype(float), HALF_LIFE)

    assert sum(map(proven, range(100))) <= 2


def test_two_dashboards_of_one_shape() -> None:
    asked = np.repeat(np.arange(30.0), 8) + 0.5
    lags = np.tile([7, 30, 7, 30, 7, 7, 30, 7], 30)
    assert moves_with_the_clock(asked, np.floor(asked - lags)[:, None], HALF_LIFE)
    assert not moves_with_the_clock(asked, 2.0 * asked[:, None], HALF_LIFE)


def test_no_date_leaves_the_calendar() -> None:
    text = ["day >= DATE '2026-11-20' AND day < DATE '9999-12-31'"]
    asked = dates_in(text)[0] + 7
    assert Clock({0, 1}, 1).coming(text, asked, asked + 30, 7, 1) == tuple(text)
    assert Clock({0}, 1).coming(text, asked, asked + 30, 7, 1) != tuple(text)
    assert dates_in(["day = DATE '2026-02-31' AND day < DATE '2026-03-01'"]) == ()
