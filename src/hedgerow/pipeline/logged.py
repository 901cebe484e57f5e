"""logged: makes a workload of the queries in a table's log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.predicates.nodes import atoms_of, columns_of
from hedgerow.core.predicates.sql_text import in_backticks, quote_name
from hedgerow.core.workload.queries import Query
from hedgerow.spark.start.session import first_line, in_own_session, spark_errors
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|\w+(?![\w(])")  # texts, quoted names, and words, no functions
_LITERALS = re.compile(r"'(?:[^'\\]|\\.)*'|(?<![\w`])-?\d[\w.]*")
_LISTS = re.compile(r"\(\?(?:, \?)+\)")
_MAX_REPEATS = 3  # of a query in a workload: enough to learn from two and to hold out one


@in_own_session
def logged(spark: SparkSession, table: str, name: str | None = None, since: str | None = None) -> Workload:
    """Return the queries in a table's log as a workload: equal conditions once, weighted by how often they came.

    `name`: what the workload calls the table. `since`: a time such as 2026-11-01, before which queries do not count.
    """
    return workload_of(QueryLog.of(spark, table), name or open_source(spark, table).name, since)


def workload_of(log: QueryLog, name: str, since: str | None = None) -> Workload:
    """Return the workload in a log, in the order in which its queries came; the weight says how often a query came."""
    queries = different_queries(log, since)
    return read_workload(name, queries, occurrences(queries, [float(query.times) for query in queries]))


def different_queries(log: QueryLog, since: str | None = None, figures: Sequence[Column] = ()) -> list[Any]:
    """Return the different queries in a log, the last ones last; entries with equal texts are one.

    Each has `conditions`, `keys`, `columns`, `joins`, `times`, mean `seconds`, `first` and `last` in microseconds, and
    `redacted`. `figures`: further aggregates of the entries of a query."""
    queries = grouped(log.frame(since), ["conditions", "keys", "columns", "joins"], figures, log.folder)
    if not queries:
        raise WorkloadError(f"the log {log.folder} has no queries" + (f" since {since}" if since else ""))
    return queries


def grouped(entries: DataFrame, by: Sequence[str], figures: Sequence[Column], place: str) -> list[Any]:
    """Return the entries with different values in these columns, each with the figures of `different_queries`."""
    from pyspark.sql import functions as f

    each = entries.groupBy(*by).agg(
        f.avg("seconds").alias("seconds"),
        f.count("*").alias("times"),
        *(of(f.unix_micros("at")).alias(name) for of, name in ((f.min, "first"), (f.max, "last"))),
        f.max("redacted").alias("redacted"),
        *figures,
    )
    try:
        return sorted(each.collect(), key=lambda query: (query.last, *(query[name] for name in by)))
    except spark_errors() as error:
        raise HedgerowError(f"the log {place} cannot be read: {first_line(error)}") from error


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One of the times when a query came; `query`: its place among the different ones.

    `conditions`: what it is learned from, if not its own conditions."""

    at: float
    weight: float
    query: int
    conditions: tuple[str, ...] | None = None


def occurrences(queries: Sequence[Any], weights: Sequence[float]) -> list[Occurrence]:
    """Return the queries in the order of time. One that came often is there a few times, so that it is seen to recur.

    Together these have the query's weight."""
    found = []
    for place, (query, weight) in enumerate(zip(queries, weights, strict=True)):
        repeats = min(query.times, _MAX_REPEATS)
        for i in range(repeats):
            at = query.last - (query.last - query.first) * i / max(1, repeats - 1)
            found.append(Occurrence(at, weight / repeats, place))
    return sorted(found, key=lambda occurrence: occurrence.at)


def read_workload(name: str, queries: Sequence[Any], came: Sequence[Occurrence]) -> Workload:
    """Return the queries that came as a workload; nothing is learned from the others, so they are not read."""

    def read(place: int, conditions: tuple[str, ...] | None) -> Workload:
        query = queries[place]
        return read_conditions(name, query.columns, conditions or query.conditions, query["keys"])

    return put_together(queries, came, read)


def put_together(
    queries: Sequence[Any], came: Sequence[Occurrence], read_one: Callable[[int, tuple[str, ...] | None], Workload]
) -> Workload:
    """Return the queries that came; `read_one` reads the one at a place, perhaps with other conditions than its own."""
    scans: dict[tuple[int, tuple[str, ...] | None], Sequence[Query]] = {}
    skipped: list[str] = []
    texts = [(o.query, o.conditions) for o in came]
    for place, conditions in sorted(set(texts), key=lambda text: (text[0], text[1] or ())):
        number = place + 1
        if queries[place].redacted:
            skipped.append(f"logged query {number} is left out: its literals were redacted")
            continue
        try:
            read = read_one(place, conditions)
        except WorkloadError as error:
            skipped.append(f"logged query {number} is left out: {error}")
            continue
        scans[place, conditions] = read.queries
        skipped += read.skipped
    all_scans = [
        replace(scan, weight=o.weight) for o, text in zip(came, texts, strict=True) for scan in scans.get(text, ())
    ]
    if not all_scans:
        raise WorkloadError(f"no logged query can be learned from: {skipped[0]}")
    return Workload(tuple(replace(scan, id=f"q{n}") for n, scan in enumerate(all_scans, 1)), tuple(skipped))


def text_shape(conditions: Sequence[str]) -> str:
    """Return the conditions without their literals: queries of one shape differ in literals only.

    >>> text_shape(["c1 IN ('a', 'it\\\\'s') AND x >= -5.0D", "x < 7"])
    'c1 IN (?) AND x >= ?; x < ?'
    """
    return _LISTS.sub("(?)", _LITERALS.sub("?", "; ".join(conditions)))


def read_conditions(
    table: str, columns: Sequence[str], conditions: Sequence[str], keys: Sequence[str] = ()
) -> Workload:
    """Return the scans of a query. Spark writes names of columns without quotes, even reserved words of SQL.

    `keys`: what the keys of joins were, for each scan."""
    if any(keys):
        written = read_conditions(table, columns, conditions)
        by_keys = read_conditions(
            table, columns, [f"{c} AND {k or 'TRUE'}" for c, k in zip(conditions, keys, strict=True)]
        )
        queries = (_with_keyed(q, own, table) for q, own in zip(by_keys, written, strict=True))
        return replace(by_keys, queries=tuple(queries))
    read = ", ".join(map(in_backticks, columns)) or "1"

    def of(conditions: Iterable[str]) -> Workload:
        scans = (f"SELECT {read} FROM {quote_name(table)} WHERE {condition}" for condition in conditions)
        return Workload.from_sql(" UNION ALL ".join(scans))

    try:
        return of(conditions)
    except WorkloadError:
        return of(_NAMES.sub(lambda m: f"`{m[0]}`" if m[0] in columns else m[0], c) for c in conditions)


def _with_keyed(query: Query, written: Query, table: str) -> Query:
    """Return the query with the columns of its keys. `written`: the same query without the conditions on keys."""
    on_keys = {*atoms_of(query.predicate(table))} - {*atoms_of(written.predicate(table))}
    keyed = {column.path[0] for atom in on_keys for column in columns_of(atom)}
    return replace(query, keyed=written.unfiltered(table, keyed))
