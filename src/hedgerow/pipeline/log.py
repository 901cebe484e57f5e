"""log, logged: write down which queries read a table, and make a workload of them."""

from __future__ import annotations

import atexit
import logging
import math
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.core.errors import HedgerowError, WorkloadError
from hedgerow.core.predicates.sql_text import in_backticks, quote_name
from hedgerow.core.workload.queries import Query, shape
from hedgerow.core.workload.recency import still_asked, taken_over
from hedgerow.core.workload.statistics import WorkloadStatistics, statistics
from hedgerow.spark.optimizer.heard import Heard
from hedgerow.spark.start.session import first_line, in_own_session, meaning, spark_errors
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.redact import redact
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog, Waiting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MOST, _NEARLY_ALL = 0.75, 0.9  # shares of what is scanned that a query filters away
_NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`]|``)*`|\w+(?![\w(])")  # texts, quoted names, and words, no functions
_LOGGER = logging.getLogger("hedgerow")
_MOST_OF_ONE = 3  # queries of a workload that are one query of the log: enough to learn from two and to hold out one
_DAY = 86_400e6  # microseconds
_DAYS = 7  # of a half-life, which is a week by default; of any other a seventh is taken for a day
_TAKEN_EVERY = 5.0  # seconds between two looks at the JVM's notes: as much is lost when the process is killed


class Log:
    """Writes down a session's queries of some tables until it is stopped; made by `hedgerow.log`."""

    def __init__(
        self, spark: SparkSession, logs: Mapping[str, QueryLog], every: float, redact: bytes | None = None
    ) -> None:
        self._logs = logs
        self._key = redact
        self._heard = Heard(spark)
        self._waiting = {name: Waiting(log) for name, log in logs.items()}
        self._names = {log.root: name for name, log in logs.items()}
        self._process, self._count, self.lost = uuid4().hex, 0, 0
        self._lock, self._stopped = Lock(), Event()
        self._heard.start(list(self._names))
        self._thread = Thread(target=self._run, args=(every,), name="hedgerow-log", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def flush(self) -> int:
        """Brings every query that has ended into the log tables; returns how many entries were written."""
        self._heard.wait()
        with self._lock:
            self._take()
            return sum(waiting.append_to(self._logs[name]) for name, waiting in self._waiting.items())

    def stop(self) -> None:
        """Writes what is missing and stops; what cannot be written now waits for the next `log` on this machine."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        self._thread.join()
        try:
            self.flush()
            self._heard.stop()
        except Exception as error:  # the session may be gone
            _LOGGER.warning("queries wait to be logged: %s", first_line(error))
        finally:
            for waiting in self._waiting.values():
                waiting.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _run(self, every: float) -> None:
        waited = 0.0
        pause = min(every, _TAKEN_EVERY)
        while not self._stopped.wait(pause):
            waited += pause
            try:
                with self._lock:
                    self._take()
                    if waited >= every:
                        for name, waiting in self._waiting.items():
                            waiting.append_to(self._logs[name])
                        waited = 0.0
            except Exception as error:  # tried again; a log must never end the program whose queries it writes down
                _LOGGER.warning("queries wait to be logged: %s", first_line(error))
                if not self._is_alive():
                    return

    def _is_alive(self) -> bool:
        from pyspark import SparkContext

        return SparkContext._active_spark_context is not None

    def _take(self) -> None:
        """Writes the JVM's notes to this machine's disk."""
        notes, lost = self._heard.taken()
        self.lost += lost
        entries: dict[str, list[dict[str, Any]]] = {}
        for note in notes:
            by_root: dict[str, list[dict[str, Any]]] = {}
            for scan in note["scans"]:
                by_root.setdefault(scan["root"], []).append(scan)
            for root, scans in by_root.items():
                entries.setdefault(self._names[root], []).append(self._entry(note, scans))
        for name, some in entries.items():
            self._waiting[name].add(some)

    def _entry(self, note: Mapping[str, Any], scans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        self._count += 1
        conditions = [" AND ".join(scan["where"]) or "TRUE" for scan in scans]
        key = self._key
        return {
            "query": f"{self._process}-{self._count}",
            "at": note["at"],
            "source": "session",
            "conditions": conditions if key is None else [redact(condition, key) for condition in conditions],
            "columns": sorted({column for scan in scans for column in scan["columns"]}),
            **{name: sum(scan[name] for scan in scans) for name in ("files", "bytes", "rows")},
            "rows_kept": sum(scan["kept"] for scan in scans),
            "seconds": note["seconds"],
            "redacted": key is not None,
        }


def log(
    spark: SparkSession,
    table: str | Mapping[str, str] | Sequence[str],
    every: float = 300.0,
    redact: bool | str = False,
) -> Log:
    """Write down every query of this session that reads the table, or one of the tables, from now on.

    Conditions, columns, files, bytes, rows and seconds go to the table's `_hedgerow/log`; `every`: seconds between two
    appends. `redact` replaces the literals in conditions by hashes, with a key of this process or, if a text, with that
    key: one can count such queries, but not learn from them. Stop it with `stop()`, or use it with `with`.
    """
    if every <= 0:
        raise HedgerowError(f"every has to be a number of seconds above 0, not {every}")
    named = {table: table} if isinstance(table, str) else table if isinstance(table, Mapping) else {t: t for t in table}
    if not named:
        raise HedgerowError("name at least one table whose queries are to be logged")
    key = None if redact is False else secrets.token_bytes(32) if redact is True else redact.encode()
    return Log(spark, {name: QueryLog.of(spark, place) for name, place in named.items()}, every, key)


@in_own_session
def logged(spark: SparkSession, table: str, name: str | None = None, since: str | None = None) -> Workload:
    """The queries in a table's log as a workload: the same conditions once, with how often they came as weight.

    `name`: what the workload calls the table. `since`: a time such as 2026-11-01, before which queries do not count.
    """
    return workload_of(QueryLog.of(spark, table), name or open_source(spark, table).name, since)


@dataclass(frozen=True)
class Span:
    """How many days a log has, at least one, and how many queries; `mean`: the seconds that one took, None if that is
    not known."""

    days: float
    queries: float
    mean: float | None


def span_of(log: QueryLog, since: str | None = None, half_life: float | None = None) -> Span:
    """The span of a log, or of its part from a time on; after `half_life` days queries and days count half."""
    from pyspark.sql import functions as f

    recent = log.frame(since)
    weight = _weight(recent, half_life)
    micros = f.unix_micros(f.max("at")) - f.unix_micros(f.min("at"))
    timed = f.when(f.col("seconds").isNotNull(), weight)
    sums = (f.sum(of) for of in (weight, weight * f.col("seconds"), timed))
    found = recent.agg(micros / _DAY, *sums).first()
    assert found is not None  # an aggregate has one row
    days, queries, seconds, known = (part or 0.0 for part in found)
    if half_life is not None:
        days = _counted_days(days, half_life)
    return Span(max(1.0, days), queries, seconds / known if seconds else None)


def _counted_days(days: float, half_life: float) -> float:
    """So many days until now, if each counts as much as its queries."""
    return half_life / math.log(2) * (1 - math.pow(0.5, days / half_life))


def _weight(entries: DataFrame, half_life: float | None) -> Column:
    """What each entry of a log counts: half after so many days, from the last one on."""
    from pyspark.sql import functions as f

    if half_life is None:
        return f.lit(1.0)
    now = f.unix_micros(f.current_timestamp())  # a clock that goes wrong may have logged a time to come
    last = (entries.agg(f.least(f.max(f.unix_micros("at")), now)).first() or [None])[0]
    return f.pow(f.lit(0.5), f.greatest(f.lit(0), f.lit(last) - f.unix_micros("at")) / (half_life * _DAY))


def workload_of(log: QueryLog, name: str, since: str | None = None, half_life: float | None = None) -> Workload:
    """The workload in a log, in the order in which its queries came; a query counts how often it came.

    One that came often is in it a few times, so that learners see that it recurs. `half_life`: the days after which it
    counts half, from the last query of the log on; then queries of a kind that was not asked lately count less too, and
    the others more. A seventh of the half-life is taken for a day: that is what it is by default."""
    return timed_workload_of(log, name, since, half_life)[0]


def timed_workload_of(
    log: QueryLog, name: str, since: str | None = None, half_life: float | None = None
) -> tuple[Workload, float | None]:
    """The same, and the mean seconds that these queries took, each by its weight; None if that is not known."""
    from pyspark.sql import functions as f

    recent = log.frame(since)
    try:
        weight = _weight(recent, half_life)
        asked = recent.groupBy("conditions", "columns").agg(
            f.sum(weight).alias("weight"),
            f.avg("seconds").alias("seconds"),
            f.count("*").alias("times"),
            f.sum((weight > 0.5 ** (1 / _DAYS)).cast("int")).alias("lately"),
            *(of(f.unix_micros("at")).alias(name) for of, name in ((f.min, "first"), (f.max, "last"))),
            f.max("redacted").alias("redacted"),
            f.collect_set(f.floor(f.unix_micros("at") / ((half_life or _DAYS) / _DAYS * _DAY))).alias("days"),
        )
        rows = asked.orderBy("last", "conditions", "columns").collect()
    except spark_errors() as error:
        raise HedgerowError(f"the log {log.folder} cannot be read: {first_line(error)}") from error
    came: list[tuple[Any, str, Sequence[Query]]] = []
    skipped: list[str] = []
    for number, row in enumerate(rows, 1):
        if row.redacted:
            skipped.append(f"logged query {number} is left out: its literals were redacted")
            continue
        try:
            read = _read(name, row.columns, row.conditions)
        except WorkloadError as error:
            skipped.append(f"logged query {number} is left out: {error}")
            continue
        kind = " ".join(shape(query.predicate(name)) for query in read.queries)
        came.append((row, kind, read.queries))
        skipped += read.skipped
    weights = [row.weight for row, *_ in came]
    if half_life is not None and came:
        weights = _by_kind([(row, kind) for row, kind, _ in came], half_life)
    queries: list[tuple[float, Query]] = []
    for (row, _, own), weight in zip(came, weights, strict=True):
        shown = min(row.times, _MOST_OF_ONE)
        for i in range(shown):
            at = row.last - (row.last - row.first) * i / max(1, shown - 1)
            queries += [(at, replace(query, weight=weight / shown)) for query in own]
    if rows and not queries:
        raise WorkloadError(f"no query of the log {log.folder} can be learned from: {skipped[0]}")
    if not rows:
        raise WorkloadError(f"the log {log.folder} has no queries" + (f" since {since}" if since else ""))
    queries.sort(key=lambda query: query[0])
    named = (replace(query, id=f"q{number}") for number, (_, query) in enumerate(queries, 1))
    took = [(weight, row.seconds) for (row, *_), weight in zip(came, weights, strict=True) if row.seconds is not None]
    timed = sum(weight for weight, _ in took)
    mean = sum(weight * seconds for weight, seconds in took) / timed if timed else None
    return Workload(tuple(named), tuple(skipped)), mean


def _by_kind(came: Sequence[tuple[Any, str]], half_life: float) -> list[float]:
    """What each entry counts beside the others, by the days on which its kind was asked."""
    days: dict[str, set[int]] = {}
    for row, kind in came:
        days.setdefault(kind, set()).update(row.days)
    asked = still_asked(days)
    still = [asked[kind] * row.weight for row, kind in came]
    span = (max(row.last for row, _ in came) - min(row.first for row, _ in came)) / _DAY
    days_of_all = _counted_days(span, half_life) / (half_life / _DAYS)
    at_this_rate = days_of_all * sum(row.lately for row, _ in came)
    more = taken_over(sum(row.weight for row, _ in came), sum(still), at_this_rate)
    return [more * weight for weight in still]


def _read(table: str, columns: Sequence[str], conditions: Sequence[str]) -> Workload:
    """The scans of a query. Spark writes the names of columns without quotes, those that are words of SQL too."""
    read = ", ".join(map(in_backticks, columns)) or "1"

    def of(conditions: Iterable[str]) -> Workload:
        scans = (f"SELECT {read} FROM {quote_name(table)} WHERE {condition}" for condition in conditions)
        return Workload.from_sql(" UNION ALL ".join(scans))

    try:
        return of(conditions)
    except WorkloadError:
        return of(_NAMES.sub(lambda m: f"`{m[0]}`" if m[0] in columns else m[0], c) for c in conditions)


@dataclass(frozen=True)
class LogReport:
    """What a log says: what queries filter on, and what they scanned for it.

    `filter_most`, `filter_nearly_all`: of the queries whose scans gave rows, the shares whose filters dropped three
    quarters, and nine tenths, of them. They are what a better layout could save.
    """

    workload: WorkloadStatistics
    partitions: list[str]
    first: str
    last: str
    rows: int
    kept: float
    filter_most: float
    filter_nearly_all: float
    files: int
    mean_file_bytes: float
    seconds: float


@in_own_session
def report(spark: SparkSession, table: str, since: str | None = None) -> LogReport:
    """What the logged queries of a table filter on, and how much of what they scan they keep."""
    from pyspark.sql import functions as f

    source, log = open_source(spark, table), QueryLog.of(spark, table)
    workload = workload_of(log, source.name, since).bind({source.name: source.schema}, meaning(spark))
    partitions = log.partitions(table, source.files)
    recent = log.frame(since)
    dropped = 1 - f.col("rows_kept") / f.col("rows")
    found = recent.agg(
        f.min("at").cast("string").alias("first"),
        f.max("at").cast("string").alias("last"),
        *(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in ("rows", "rows_kept", "files", "bytes", "seconds")),
        *(
            f.coalesce(f.avg(f.when(f.col("rows") > 0, (dropped >= part).cast("int"))), f.lit(0.0)).alias(name)
            for name, part in (("filter_most", _MOST), ("filter_nearly_all", _NEARLY_ALL))
        ),
    ).first()
    assert found is not None  # an aggregate has one row
    return LogReport(
        statistics(workload, source.name, partitions),
        partitions,
        found["first"],
        found["last"],
        found["rows"],
        found["rows_kept"] / (found["rows"] or 1),
        found["filter_most"],
        found["filter_nearly_all"],
        found["files"],
        found["bytes"] / (found["files"] or 1),
        found["seconds"],
    )
