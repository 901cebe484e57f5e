"""log: writes down which queries read a table."""

from __future__ import annotations

import atexit
import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.core.workload.statistics import WorkloadStatistics, statistics
from hedgerow.pipeline.logged import workload_of
from hedgerow.spark.optimizer.query_notes import QueryListener
from hedgerow.spark.start.session import first_line, in_own_session
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.source import open_source
from hedgerow.spark.wire import QueryNote, ScanNote
from hedgerow.sql.redact import redact
from hedgerow.tables.query_log import QueryLog, Waiting, query_id

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MOST, _NEARLY_ALL = 0.75, 0.9  # shares of the scanned rows that a query filters away
_LOGGER = logging.getLogger("hedgerow")
_TAKEN_EVERY = 5.0  # seconds; the queries since the last time are lost if the process is killed


class Log:
    """Writes down a session's queries of some tables until it is stopped; made by `hedgerow.log`."""

    def __init__(
        self, spark: SparkSession, logs: Mapping[str, QueryLog], every: float, redact: bytes | None = None
    ) -> None:
        self._logs = logs
        self._key = redact
        self._listener = QueryListener(spark)
        self._waiting = {name: Waiting(log) for name, log in logs.items()}
        self._names = {log.root: name for name, log in logs.items()}
        self._application: str = spark.sparkContext.applicationId
        self.lost = 0
        self._lock, self._stopped = Lock(), Event()
        self._listener.start(list(self._names))
        self._thread = Thread(target=self._run, args=(every,), name="hedgerow-log", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def flush(self) -> int:
        """Write every query that has ended into the log tables; return the number of entries."""
        self._listener.wait()
        with self._lock:
            self._take()
            return sum(waiting.append_to(self._logs[name]) for name, waiting in self._waiting.items())

    def stop(self) -> None:
        """Write the last entries and stop; entries that cannot be written wait for the next `log` on this machine."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        atexit.unregister(self.stop)
        self._thread.join()
        try:
            self.flush()
            self._listener.stop()
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
        """Write the JVM's notes to this machine's disk."""
        notes, lost = self._listener.taken()
        self.lost += lost
        entries: dict[str, list[dict[str, Any]]] = {}
        for note in notes:
            joins = _joins(note)
            by_root: dict[str, list[int]] = {}
            for number, scan in enumerate(note.scans):
                by_root.setdefault(scan.root, []).append(number)
            for root, numbers in by_root.items():
                entry = self._entry(note, [note.scans[i] for i in numbers], [joins[i] for i in numbers])
                entries.setdefault(self._names[root], []).append(entry)
        for name, some in entries.items():
            self._waiting[name].add(some)

    def _entry(self, note: QueryNote, scans: Sequence[ScanNote], joins: Sequence[str]) -> dict[str, Any]:
        conditions = [" AND ".join(scan.where) or "TRUE" for scan in scans]
        key = self._key
        return {
            "query": query_id(self._application, note.execution, note.at),
            "at": note.at,
            "source": "session",
            "conditions": conditions if key is None else [redact(condition, key) for condition in conditions],
            "keys": [" AND ".join(scan.keys) if key is None else "" for scan in scans],
            "joins": joins,
            "columns": sorted({column for scan in scans for column in scan.columns}),
            "kinds": [scan.kind for scan in scans],
            "means": [scan.means for scan in scans],
            **{name: sum(getattr(scan, name) for scan in scans) for name in ("files", "bytes", "rows")},
            "files_listed": sum(scan.listed for scan in scans),
            "rows_kept": sum(scan.kept for scan in scans),
            "seconds": note.seconds,
            "redacted": key is not None,
        }


def _joins(note: QueryNote) -> list[str]:
    """Return for each scan its joins with scans of other logged tables, as JSON; an empty text if it has none.

    `root` is the folder of the other table, and `scan` the place of the other scan among that table's."""
    roots = [scan.root for scan in note.scans]
    edges: list[list[dict[str, Any]]] = [[] for _ in roots]
    for join in note.joins:
        root = roots[join.other]
        if root != roots[join.scan]:
            place = roots[: join.other].count(root)
            other = {"root": root, "scan": place, "other_columns": list(join.other_columns)}
            edges[join.scan].append({"columns": list(join.columns), **other})
    return [json.dumps(some) if some else "" for some in edges]


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


@dataclass(frozen=True)
class LogReport:
    """A summary of a log: the columns that queries filter on, and the rows and files that they scanned.

    `kinds`: the share of the queries of each kind. `skipped`: the share of the files that each means skipped.
    `filter_most`, `filter_nearly_all`: the shares of queries whose filters dropped three quarters, and nine tenths, of
    the scanned rows. A better layout could save these scans. Queries whose scans gave no row do not count.
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
    kinds: dict[str, float]
    skipped: dict[str, float]


@in_own_session
def report(spark: SparkSession, table: str, since: str | None = None) -> LogReport:
    """Summarise the logged queries of a table: their filters, and how much of the scanned rows they keep."""
    from pyspark.sql import functions as f

    source, log = open_source(spark, table), QueryLog.of(spark, table)
    workload = workload_of(log, source.name, since).bind({source.name: source.schema}, meaning(spark))
    partitions = log.partitions(table, source.files)
    recent = log.frame(since)
    dropped = 1 - f.col("rows_kept") / f.col("rows")
    totals = recent.agg(
        f.min("at").cast("string").alias("first"),
        f.max("at").cast("string").alias("last"),
        *(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in ("rows", "rows_kept", "files", "bytes", "seconds")),
        *(
            f.coalesce(f.avg(f.when(f.col("rows") > 0, (dropped >= part).cast("int"))), f.lit(0.0)).alias(name)
            for name, part in (("filter_most", _MOST), ("filter_nearly_all", _NEARLY_ALL))
        ),
    ).first()
    assert totals is not None  # an aggregate has one row
    return LogReport(
        statistics(workload, source.name, partitions),
        partitions,
        totals["first"],
        totals["last"],
        totals["rows"],
        totals["rows_kept"] / (totals["rows"] or 1),
        totals["filter_most"],
        totals["filter_nearly_all"],
        totals["files"],
        totals["bytes"] / (totals["files"] or 1),
        totals["seconds"],
        _shares(recent, "kinds", f.count("*") / recent.count()),
        _shares(recent, "means", 1 - f.try_divide(f.sum("files"), f.sum("files_listed"))),
    )


def _shares(entries: DataFrame, names: str, share: Column) -> dict[str, float]:
    """Return a share for each name in a list column, over the entries that have no other name in it."""
    from pyspark.sql import functions as f

    named = entries.withColumn("name", f.array_join(f.array_distinct(f.array_remove(names, "")), " and "))
    rows = named.where("name <> ''").groupBy("name").agg(share.alias("share")).collect()
    return {
        row["name"]: row["share"] or 0.0 for row in sorted(rows, key=lambda row: (-(row["share"] or 0.0), row["name"]))
    }
