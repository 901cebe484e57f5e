"""logged: makes a workload of the queries in a table's log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.predicates.sql_text import in_backticks, quote_name
from hedgerow.core.workload.queries import Query, shape
from hedgerow.spark.start.session import first_line, in_own_session, spark_errors
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|\w+(?![\w(])")  # texts, quoted names, and words, no functions
_MAX_REPEATS = 3  # of a query in a workload: enough to learn from two and to hold out one


@in_own_session
def logged(spark: SparkSession, table: str, name: str | None = None, since: str | None = None) -> Workload:
    """Return the queries in a table's log as a workload: equal conditions once, weighted by how often they came.

    `name`: what the workload calls the table. `since`: a time such as 2026-11-01, before which queries do not count.
    """
    return workload_of(QueryLog.of(spark, table), name or open_source(spark, table).name, since)


def workload_of(log: QueryLog, name: str, since: str | None = None) -> Workload:
    """Return the workload in a log, in the order in which its queries came; the weight says how often a query came."""
    queries, skipped = logged_queries(log, name, since)
    return as_workload(queries, [float(query.row.times) for query in queries], skipped)


@dataclass(frozen=True)
class LoggedQuery:
    """The entries of a log with equal conditions and columns; `scans`: their reads of the table."""

    row: Any  # of the log: `times`, mean `seconds`, `first` and `last` in microseconds, and the caller's figures
    scans: tuple[Query, ...]
    shape: str


def logged_queries(
    log: QueryLog,
    name: str,
    since: str | None = None,
    figures: Callable[[DataFrame], Sequence[Column]] = lambda entries: (),
) -> tuple[list[LoggedQuery], list[str]]:
    """Return the queries in a log, the last ones last, and a sentence for each that nothing can be learned from.

    `figures`: further aggregates of the entries of a query."""
    from pyspark.sql import functions as f

    recent = log.frame(since)
    try:
        grouped = recent.groupBy("conditions", "columns").agg(
            f.avg("seconds").alias("seconds"),
            f.count("*").alias("times"),
            *(of(f.unix_micros("at")).alias(name) for of, name in ((f.min, "first"), (f.max, "last"))),
            f.max("redacted").alias("redacted"),
            *figures(recent),
        )
        rows = grouped.orderBy("last", "conditions", "columns").collect()
    except spark_errors() as error:
        raise HedgerowError(f"the log {log.folder} cannot be read: {first_line(error)}") from error
    queries: list[LoggedQuery] = []
    skipped: list[str] = []
    for number, row in enumerate(rows, 1):
        if row.redacted:
            skipped.append(f"logged query {number} is left out: its literals were redacted")
            continue
        try:
            scans = read_conditions(name, row.columns, row.conditions)
        except WorkloadError as error:
            skipped.append(f"logged query {number} is left out: {error}")
            continue
        text = " ".join(shape(query.predicate(name)) for query in scans.queries)
        queries.append(LoggedQuery(row, tuple(scans.queries), text))
        skipped += scans.skipped
    if not rows:
        raise WorkloadError(f"the log {log.folder} has no queries" + (f" since {since}" if since else ""))
    if not any(query.scans for query in queries):
        raise WorkloadError(f"no query of the log {log.folder} can be learned from: {skipped[0]}")
    return queries, skipped


def as_workload(logged: Sequence[LoggedQuery], weights: Sequence[float], skipped: Sequence[str]) -> Workload:
    """Return the queries as a workload. One that came often is in it a few times, so that learners see it recur."""
    queries: list[tuple[float, Query]] = []
    for entry, weight in zip(logged, weights, strict=True):
        row, repeats = entry.row, min(entry.row.times, _MAX_REPEATS)
        for i in range(repeats):
            at = row.last - (row.last - row.first) * i / max(1, repeats - 1)
            queries += [(at, replace(query, weight=weight / repeats)) for query in entry.scans]
    queries.sort(key=lambda query: query[0])
    return Workload(tuple(replace(query, id=f"q{n}") for n, (_, query) in enumerate(queries, 1)), tuple(skipped))


def read_conditions(table: str, columns: Sequence[str], conditions: Sequence[str]) -> Workload:
    """Return the scans of a query. Spark writes names of columns without quotes, even reserved words of SQL."""
    read = ", ".join(map(in_backticks, columns)) or "1"

    def of(conditions: Iterable[str]) -> Workload:
        scans = (f"SELECT {read} FROM {quote_name(table)} WHERE {condition}" for condition in conditions)
        return Workload.from_sql(" UNION ALL ".join(scans))

    try:
        return of(conditions)
    except WorkloadError:
        return of(_NAMES.sub(lambda m: f"`{m[0]}`" if m[0] in columns else m[0], c) for c in conditions)
