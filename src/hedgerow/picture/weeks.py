"""The weeks of a table: what its logged queries took, and what the autopilot did and took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

from hedgerow.core.errors import HedgerowError
from hedgerow.picture.facts import Week
from hedgerow.pilot.decision import Decision
from hedgerow.spark.start.session import spark_errors
from hedgerow.tables.query_log import QueryLog

_MOST = 53
_MONDAY = date(1969, 12, 29)  # of week 0
_WEEK_MICROS = 7 * 86_400_000_000
_BEFORE_1970 = 3 * 86_400_000_000  # week 0 began three days before


def weeks_of(log: QueryLog, decisions: Sequence[Decision]) -> tuple[Week, ...]:
    """Return the last weeks, those without a query or a decision in between too; a log that cannot be read has none."""
    return weeks(_logged(log), decisions, _number(datetime.now(timezone.utc)))


def weeks(logged: Mapping[int, Week], decisions: Sequence[Decision], last: int) -> tuple[Week, ...]:
    """Return the weeks up to the `last` one; a clock that went wrong may have noted a time to come.

    `logged`: the queries of each week, by its number."""
    by_week = dict(logged)
    for decision in sorted(decisions, key=lambda d: datetime.fromisoformat(d.at)):
        number = _number(datetime.fromisoformat(decision.at))
        week, outcome = by_week.get(number, Week("")), decision.outcome
        by_week[number] = replace(
            week,
            actions=week.actions if outcome is None else (*week.actions, decision.action),
            search_seconds=week.search_seconds + decision.search_seconds,
            rewrite_seconds=week.rewrite_seconds + (0.0 if outcome is None else outcome.seconds),
        )
    known = [number for number in by_week if last - _MOST < number <= last]
    numbers = range(min(known), max(known) + 1) if known else ()
    return tuple(replace(by_week.get(n, Week("")), monday=str(_MONDAY + timedelta(weeks=n))) for n in numbers)


def _number(at: datetime) -> int:
    return int((at.timestamp() * 1e6 + _BEFORE_1970) // _WEEK_MICROS)


def _logged(log: QueryLog) -> dict[int, Week]:
    """Return the queries of each week; weeks are of UTC, whatever the zone of the session is."""
    from pyspark.sql import functions as f

    number = f.floor((f.unix_micros("at") + _BEFORE_1970) / _WEEK_MICROS)
    figures = f.count("*").alias("queries"), f.count("seconds").alias("timed"), f.sum("seconds").alias("seconds")
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        rows = log.frame().groupBy(number.alias("week")).agg(*figures).collect()
    except failures:
        return {}
    return {int(row.week): Week("", row.queries, row.timed, row.seconds or 0.0) for row in rows if row.week is not None}
