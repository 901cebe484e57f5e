"""The workload and the span of a log in which recent queries count more."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pilot.recent_queries import RecentLog
from hedgerow.pipeline import logged
from hedgerow.pipeline.logged import workload_of
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog
from tests.support.events_table import write_events
from tests.support.past_queries import past_query


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> str:
    return write_events(spark, str(tmp_path / "events"), 8000)


def test_old_queries_count_less(spark: SparkSession, parquet: str) -> None:
    log = QueryLog.of(spark, parquet)
    log.append([past_query("number < 5", 14, 1), past_query("number < 6", 0, 2), past_query("number < 6", 7, 3)])
    recent = RecentLog.read(log, 7)
    assert recent.span.mean == recent.mean_seconds == 1
    assert recent.span.days == pytest.approx(7 / math.log(2) * 0.75)
    assert recent.span.queries == pytest.approx(0.25 + 0.5 + 1)
    found = [(query.text.partition("WHERE ")[2], query.weight) for query in recent.workload("events", 200)]
    # Each of the two that are one query has half of their weight.
    assert found == [("number < 5", pytest.approx(0.25)), *[("number < 6", pytest.approx(0.75))] * 2]


def test_late_queries(spark: SparkSession, parquet: str) -> None:
    """Those since a time, with the seconds of kinds that came more often than before."""
    log = QueryLog.of(spark, parquet)
    log.append([past_query(f"number < {n}", 3, n) for n in range(10)])
    log.append([past_query(f"number < {n}", 0.5, 10 + n) for n in range(4)])
    log.append([{**past_query(f"id = {n}", 0.5, 20 + n), "seconds": 2.0} for n in range(3)])
    since = (datetime.now(timezone.utc) - timedelta(days=1)).isoformat()
    recent = RecentLog.read(log, 7, since)
    assert (recent.late.queries, recent.late.mean, recent.news) == (7, pytest.approx(10 / 7), pytest.approx(6))
    assert RecentLog.read(log, 7).late.queries == RecentLog.read(log, 7).news == 0


def test_of_a_long_log_some_queries_are_read(
    spark: SparkSession, parquet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the weight of all, and each kind keeps about its share."""
    log, read = QueryLog.of(spark, parquet), list[str]()
    log.append([past_query(f"number < {n}" if n % 4 else f"id = {n}", 0, n) for n in range(400)])
    plain = logged.read_conditions
    monkeypatch.setattr(logged, "read_conditions", lambda t, c, w, k: (read.extend(w), plain(t, c, w, k))[1])
    some = RecentLog.read(log, 7).workload("events", 20)
    assert len(some) == len(read) == 20
    assert sum(query.weight for query in some) == pytest.approx(400, rel=1e-3)
    assert sum("id =" in text for text in read) == 5


def test_shapes_that_are_absent_count_less(spark: SparkSession, parquet: str) -> None:
    """A shape was asked each day and then was not, with whatever literals. The others count more, if there are as many
    queries as before."""
    day, by_age = 1.001, [0.5 ** (1.001 * days / 7) for days in range(8)]
    log = QueryLog.of(spark, parquet)

    def weights(workload: Workload) -> tuple[float, float]:
        gone, daily = 0.0, 0.0
        for query in workload:
            gone, daily = gone + query.weight * ("<" in query.text), daily + query.weight * ("<" not in query.text)
        return gone, daily

    log.append(
        [
            *(past_query(f"number < {days}", day * days, days) for days in range(4, 8)),
            *(past_query("id = 7 AND number = 1", day * days, 10 + days) for days in range(8)),
        ]
    )
    assert weights(workload_of(log, "events")) == (4, 8)
    gone, daily = 2**-3 * sum(by_age[4:]), sum(by_age)
    assert weights(RecentLog.read(log, 7).workload("events", 200)) == (
        pytest.approx(gone, rel=1e-4),
        pytest.approx(daily, rel=1e-4),
    )
    log.append([past_query("id = 7 AND number = 2", 0.01 * n, 20 + n) for n in range(4)])
    more = weights(RecentLog.read(log, 7).workload("events", 200))
    assert sum(more) == pytest.approx(sum(by_age) + sum(by_age[4:]) + 4, rel=1e-3)
    assert more[0] / more[1] == pytest.approx(gone / (daily + 4), rel=1e-3)


def test_dates_that_move_with_the_clock_move_on(spark: SparkSession, parquet: str) -> None:
    log, today = QueryLog.of(spark, parquet), datetime.now(timezone.utc).date()
    asked = [today - timedelta(ago + 30) for ago in range(20)]
    log.append([past_query(f"day >= DATE '{day}'", ago, ago) for ago, day in enumerate(asked)])
    log.append([past_query("number < 5", ago, 20 + ago) for ago in range(20)])
    dates = [re.findall(r"\d{4}-\d\d-\d\d", query.text) for query in RecentLog.read(log, 7).workload("events", 200)]
    moved = {date.fromisoformat(day) for days in dates for day in days} - {*asked}
    assert len(moved) >= 3 and all(timedelta(23) <= today - day < timedelta(30) for day in moved)
    assert sum(not days for days in dates) == 3  # of the other one, each time that it is there


def test_queries_that_recur_are_seen_to_recur(spark: SparkSession, parquet: str) -> None:
    """As if they had been asked one by one, a few times each."""
    log = QueryLog.of(spark, parquet)
    daily = [past_query("number < 5", day, day) for day in range(9)]
    log.append([*daily, *(past_query(f"number < {n}", n - 9.5, n) for n in range(10, 15))])
    workload = hr.logged(spark, parquet, "events")
    came = [query.text.partition("number < ")[2] for query in workload]
    assert came == ["5", "14", "5", "13", "12", "11", "10", "5"]
    assert [query.weight for query in workload] == [3, 1, 3, 1, 1, 1, 1, 3]
    assert len({query.id for query in workload}) == 8
