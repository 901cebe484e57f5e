"""Reads a table's log with recent queries counting more: the workload that the autopilot learns from, and its span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.pilot.recency import Span, counted_days, recency_factors, replacement_factor
from hedgerow.pipeline.logged import LoggedQuery, as_workload, logged_queries
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY = 86_400e6  # microseconds
_DAYS = 7  # of a half-life: a seventh of it counts as a day in `recency`


def span_of(log: QueryLog, since: str | None = None, half_life: float | None = None) -> Span:
    """Return the span of a log, or of its part from a time on; after `half_life` days queries and days count half."""
    from pyspark.sql import functions as f

    recent = log.frame(since)
    weight = f.lit(1.0) if half_life is None else _weight(recent, half_life)
    micros = f.unix_micros(f.max("at")) - f.unix_micros(f.min("at"))
    timed = f.when(f.col("seconds").isNotNull(), weight)
    sums = (f.sum(of) for of in (weight, weight * f.col("seconds"), timed))
    totals = recent.agg(micros / _DAY, *sums).first()
    assert totals is not None  # an aggregate has one row
    days, queries, seconds, timed_queries = (total or 0.0 for total in totals)
    if half_life is not None:
        days = counted_days(days, half_life)
    return Span(max(1.0, days), queries, seconds / timed_queries if seconds else None)


def recent_workload(log: QueryLog, name: str, half_life: float) -> tuple[Workload, float | None]:
    """Return the workload in a log, and the weighted mean of its queries' seconds; None if these are not known.

    After `half_life` days, counted back from the last query, a query counts half. Queries of a shape that was not asked
    lately count less too, and the others more."""
    from pyspark.sql import functions as f

    def figures(entries: DataFrame) -> Sequence[Column]:
        weight = _weight(entries, half_life)
        return (
            f.sum(weight).alias("weight"),
            f.sum((weight > 0.5 ** (1 / _DAYS)).cast("int")).alias("on_last_day"),
            f.collect_set(f.floor(f.unix_micros("at") / (half_life / _DAYS * _DAY))).alias("days"),
        )

    queries, skipped = logged_queries(log, name, figures=figures)
    weights = _recent_weights(queries, half_life)
    timed = [(w, q.row.seconds) for w, q in zip(weights, queries, strict=True) if q.row.seconds is not None]
    total = sum(weight for weight, _ in timed)
    mean = sum(weight * seconds for weight, seconds in timed) / total if total else None
    return as_workload(queries, weights, skipped), mean


def _recent_weights(queries: Sequence[LoggedQuery], half_life: float) -> list[float]:
    days: dict[str, set[int]] = {}
    for query in queries:
        days.setdefault(query.shape, set()).update(query.row.days)
    factors = recency_factors(days)
    weights = [factors[query.shape] * query.row.weight for query in queries]
    span = (max(query.row.last for query in queries) - min(query.row.first for query in queries)) / _DAY
    all_days = counted_days(span, half_life) / (half_life / _DAYS)
    at_last_rate = all_days * sum(query.row.on_last_day for query in queries)
    factor = replacement_factor(sum(query.row.weight for query in queries), sum(weights), at_last_rate)
    return [factor * weight for weight in weights]


def _weight(entries: DataFrame, half_life: float) -> Column:
    """Return the weight of each entry of a log: it halves every `half_life` days before the last entry."""
    from pyspark.sql import functions as f

    now = f.unix_micros(f.current_timestamp())  # a clock that goes wrong may have logged a time to come
    last = (entries.agg(f.least(f.max(f.unix_micros("at")), now)).first() or [None])[0]
    return f.pow(f.lit(0.5), f.greatest(f.lit(0), f.lit(last) - f.unix_micros("at")) / (half_life * _DAY))
