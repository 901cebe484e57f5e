"""The workload and the span of a log in which recent queries count more."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pilot.recent_queries import recent_workload, span_of
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
    span = span_of(log, half_life=7)
    assert span.mean == 1
    assert (span.days, span_of(log).days) == (pytest.approx(7 / math.log(2) * 0.75), pytest.approx(14))
    found = [(query.text.partition("WHERE ")[2], query.weight) for query in recent_workload(log, "events", 7)[0]]
    # Each of the two that are one query has half of their weight.
    assert found == [("number < 5", pytest.approx(0.25)), *[("number < 6", pytest.approx(0.75))] * 2]


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
    assert weights(recent_workload(log, "events", 7)[0]) == (
        pytest.approx(gone, rel=1e-4),
        pytest.approx(daily, rel=1e-4),
    )
    log.append([past_query("id = 7 AND number = 2", 0.01 * n, 20 + n) for n in range(4)])
    more = weights(recent_workload(log, "events", 7)[0])
    assert sum(more) == pytest.approx(sum(by_age) + sum(by_age[4:]) + 4, rel=1e-3)
    assert more[0] / more[1] == pytest.approx(gone / (daily + 4), rel=1e-3)


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
