"""The weeks have the queries that a log has in them, and what the autopilot's decisions say that it did."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from hedgerow.picture.facts import Picture, Prices, Week
from hedgerow.picture.page import page
from hedgerow.picture.weeks import weeks, weeks_of
from hedgerow.pilot.decision import Decision, Outcome
from hedgerow.spark.start.session import configured
from hedgerow.tables.query_log import QueryLog
from tests.support.events_table import write_events
from tests.support.past_queries import past_query

SUNDAY, MONDAY = "2026-11-22T23:59:59+00:00", "2026-11-23T00:00:00+00:00"


def _week_of(at: str) -> int:
    return (datetime.fromisoformat(at) - datetime(1969, 12, 29, tzinfo=timezone.utc)).days // 7


def test_a_decision_is_in_its_week() -> None:
    rewrite = Decision("whole table", (), search_seconds=5.0, outcome=Outcome(7.0, "t", 1.0, 1), at=SUNDAY)
    looks = [Decision("nothing", (), search_seconds=2.0, at=MONDAY), Decision("worst files", (), at=MONDAY)]
    logged = {_week_of(MONDAY) - 3: Week("", 4, 3, 9.0)}
    found = weeks(logged, [*looks, rewrite], _week_of(MONDAY))
    assert [week.monday for week in found] == ["2026-11-02", "2026-11-09", "2026-11-16", "2026-11-23"]
    assert found[0] == Week("2026-11-02", 4, 3, 9.0) and found[1] == Week("2026-11-09")
    assert found[2] == Week("2026-11-16", actions=("whole table",), search_seconds=5.0, rewrite_seconds=7.0)
    assert found[3] == Week("2026-11-23", search_seconds=2.0)  # what was not done is no action


def test_times_to_come_and_long_gone_ones_are_left_out() -> None:
    now = _week_of(MONDAY)
    found = weeks({now + 900: Week("", 1), now: Week("", 2), now - 900: Week("", 3)}, [], now)
    assert [week.queries for week in found] == [2] and weeks({}, [], now) == ()


def test_the_queries_of_a_log(spark: SparkSession, tmp_path: Path) -> None:
    """In weeks of UTC, each entry once, whatever the session's zone is."""
    log = QueryLog.of(spark, write_events(spark, str(tmp_path / "events"), 100))
    assert weeks_of(log, []) == ()
    monday = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    monday -= timedelta(days=monday.weekday())

    def entry(at: datetime, number: int, seconds: float | None) -> dict[str, object]:
        return {**past_query("number < 5", 0, number), "at": int(at.timestamp() * 1e6), "seconds": seconds}

    before = monday - timedelta(seconds=1)
    log.append([entry(before, 1, 2.0), entry(before, 1, 2.0), entry(before, 2, None), entry(monday, 3, 8.0)])
    with configured(spark, session__timeZone="Pacific/Auckland"):
        last, this = weeks_of(log, [])
    assert (last.queries, last.timed, last.seconds) == (2, 1, 2.0)
    assert (this.queries, this.timed, this.seconds) == (1, 1, 8.0)
    assert (last.monday, this.monday) == (str((monday - timedelta(weeks=1)).date()), str(monday.date()))


def test_the_page_says_only_what_is_known() -> None:
    done = Week("2026-11-16", 4, 3, 7200.0, ("new files",), 0.0, 1800.0), Week("2026-11-23", 2, 0)
    shown = page(Picture("t", (), (), (), None, (), (), (), weeks=done, prices=Prices(hour=10.0)))
    assert (
        "<td>2.0 h by 3 of them</td><td>40 min</td><td>new files</td><td></td><td>30 min</td><td>–</td><td>5.00</td>"
        in shown
    )
    assert (
        "<td>2026-11-23</td><td>2</td><td>–</td><td>–</td><td></td><td></td><td></td><td>–</td><td>0.00</td>" in shown
    )
    assert "price" not in page(Picture("t", (), (), (), None, (), (), (), weeks=done))
