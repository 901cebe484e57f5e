"""RecentLog: a table's log, read once, with recent queries counting more: its span, its news and its workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hedgerow.core.workload.drawn import drawn_by_weight
from hedgerow.pilot.forecast import Clock, clocks_of
from hedgerow.pilot.monthly import monthly_factors
from hedgerow.pilot.recency import Span, counted_days, recency_factors, replacement_factor, unexpected_seconds
from hedgerow.pipeline.logged import (
    Occurrence,
    different_queries,
    occurrences,
    put_together,
    read_workload,
    text_shape,
)
from hedgerow.pipeline.logged_tables import different_with_others, parts_of, read_parts
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column

_DAY = 86_400e6  # microseconds
_DAYS = 7  # of a half-life: a seventh of it counts as a day in `recency`


@dataclass(frozen=True)
class RecentLog:
    """A table's log. After `half_life` days, counted back from the last query, a query counts half.

    `queries`: the different ones. Late queries are those since a time, such as that of the last search. `now`: the time
    of the last query in microseconds. `forecast`: weights and dates are those of the coming days, as far as the log
    proves them; if not, those of the log. `others`: the logs of tables that queries join to it, by name.
    """

    log: QueryLog
    queries: Sequence[Any]
    half_life: float
    now: float
    forecast: bool = True
    others: Mapping[str, QueryLog] = field(default_factory=dict)

    @staticmethod
    def read(
        log: QueryLog, half_life: float, since: str | None = None, others: Mapping[str, QueryLog] = MappingProxyType({})
    ) -> RecentLog:
        """Read the log; `since`: the time from which on queries are late, None if none are."""
        now = log.last() or 0
        figures = _figures(now, half_life, since)
        if others:
            queries = different_with_others(log, list(others.values()), figures)
        else:
            queries = different_queries(log, None, figures)
        return RecentLog(log, queries, half_life, now, others=others)

    @cached_property
    def span(self) -> Span:
        """The span of the whole log, with older days and queries counting less."""
        days = (max(query.last for query in self.queries) - min(query.first for query in self.queries)) / _DAY
        sums = (sum(getattr(q, name) for q in self.queries) for name in ("weight", "weighted_seconds", "timed_weight"))
        return _span(counted_days(days, self.half_life), *sums)

    @cached_property
    def late(self) -> Span:
        """The span of the late queries, all of which count alike."""
        sums = (sum(getattr(q, name) for q in self.queries) for name in ("late", "late_seconds", "late_timed"))
        return _span(1.0, *sums)

    @cached_property
    def news(self) -> float:
        """The seconds of late queries of kinds that came more often than before."""
        before, late, seconds = (defaultdict[str, float](float) for _ in range(3))
        for query, shape in zip(self.queries, self._shapes, strict=True):
            before[shape] += query.weight - query.late_weight
            late[shape] += query.late
            seconds[shape] += query.late * (query.seconds or 0.0)
        return unexpected_seconds(before, late, seconds)

    def workload(self, name: str, limit: int) -> Workload:
        """Return at most `limit` queries, drawn by weight, with dates that move with the clock as they will be.

        Queries of a shape that was not asked lately count less, and the others more."""
        came = occurrences(self.queries, self._weights)
        came = [o for o in came if not self.queries[o.query].redacted] or came  # if all are redacted, reading says so
        drawn = drawn_by_weight([o.weight for o in came], lambda i: self._shapes[came[i].query], limit)
        chosen = [self._as_it_will_be(replace(came[place], weight=weight), place) for place, weight in drawn.items()]
        if not self.others:
            return read_workload(name, self.queries, chosen)
        names = {self.log.root: name, **{other.root: other_name for other_name, other in self.others.items()}}

        def read(place: int, conditions: Sequence[str] | None) -> Workload:
            parts = parts_of(self.queries[place])
            if conditions is not None:
                parts = [replace(p, conditions=conditions) if p.root == self.log.root else p for p in parts]
            return read_parts(parts, names)

        return put_together(self.queries, chosen, read)

    def _as_it_will_be(self, o: Occurrence, number: int) -> Occurrence:
        """Return a query that came, as it will be asked on one of the days of the next half-life."""
        clock = self._clocks.get(o.query)
        if clock is None:
            return o
        conditions = self.queries[o.query].conditions
        coming = clock.coming(conditions, o.at / _DAY, self.now / _DAY, self.half_life, number)
        return replace(o, conditions=coming)

    @cached_property
    def mean_seconds(self) -> float | None:
        """The mean seconds of the queries in `workload`; None if they are not known."""
        timed = [(w, q.seconds) for w, q in zip(self._weights, self.queries, strict=True) if q.seconds is not None]
        total = sum(weight for weight, _ in timed)
        return sum(weight * seconds for weight, seconds in timed) / total if total else None

    @cached_property
    def _shapes(self) -> list[str]:
        return [text_shape(query.conditions) for query in self.queries]

    @cached_property
    def _clocks(self) -> dict[int, Clock]:
        return clocks_of(self.queries, self._shapes, self.half_life, _DAYS) if self.forecast else {}

    @cached_property
    def _weights(self) -> list[float]:
        counts: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for query, shape in zip(self.queries, self._shapes, strict=True):
            for day in query.days:
                counts[shape][day] += query.times / len(query.days)
        last = int(self.now // (self.half_life / _DAYS * _DAY))
        monthly = monthly_factors(counts, last, self.half_life, _DAYS) if self.forecast else dict.fromkeys(counts, 1.0)
        recent = recency_factors(counts)
        weights = [monthly[shape] * query.weight for query, shape in zip(self.queries, self._shapes, strict=True)]
        now = [recent[shape] * weight for weight, shape in zip(weights, self._shapes, strict=True)]
        span = (max(query.last for query in self.queries) - min(query.first for query in self.queries)) / _DAY
        all_days = counted_days(span, self.half_life) / (self.half_life / _DAYS)
        at_last_rate = all_days * sum(query.on_last_day for query in self.queries)
        factor = replacement_factor(sum(weights), sum(now), at_last_rate)
        return [factor * weight for weight in now]


def _span(days: float, queries: float, seconds: float, timed: float) -> Span:
    return Span(max(1.0, days), queries, seconds / timed if seconds else None)


def _figures(now: float, half_life: float, since: str | None) -> list[Column]:
    """Return the aggregates of the entries of a query. A weight halves every `half_life` days before `now`."""
    from pyspark.sql import functions as f

    age = f.greatest(f.lit(0), f.lit(now) - f.unix_micros("at")) / (half_life * _DAY)
    weight, is_timed = f.pow(f.lit(0.5), age), f.col("seconds").isNotNull()
    is_late = f.lit(False) if since is None else f.col("at") >= f.lit(since).cast("timestamp")

    def total(of: Column, where: Column) -> Column:
        return f.coalesce(f.sum(f.when(where, of)), f.lit(0.0))

    return [
        total(weight, f.lit(True)).alias("weight"),
        total(weight * f.col("seconds"), is_timed).alias("weighted_seconds"),
        total(weight, is_timed).alias("timed_weight"),
        total(f.lit(1.0), is_late).alias("late"),
        total(weight, is_late).alias("late_weight"),
        total(f.col("seconds"), is_late & is_timed).alias("late_seconds"),
        total(f.lit(1.0), is_late & is_timed).alias("late_timed"),
        f.sum((weight > 0.5 ** (1 / _DAYS)).cast("int")).alias("on_last_day"),
        f.collect_set(f.floor(f.unix_micros("at") / (half_life / _DAYS * _DAY))).alias("days"),
    ]
