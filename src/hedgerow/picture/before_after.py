"""Compares the seconds and bytes of queries before a table had its first layout with those of now.

    measured    a log has the seconds of both times: the table's own, or that of the table that it was made of
    estimated   else, at the usual speed of a disk or store, by the files that Spark opened then and opens now

A measured figure is never set against an estimated one: the machine may be any number of times faster than usual.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.core.workload.columns_read import read_columns, top
from hedgerow.core.workload.queries import Query, shape
from hedgerow.core.workload.score import Score
from hedgerow.core.workload.wanted_rows import AnyRows
from hedgerow.picture.facts import Change
from hedgerow.pipeline.block_sizes import usual_speed
from hedgerow.pipeline.estimate_seconds import SMALL_TABLE_BYTES
from hedgerow.pipeline.logged import different_queries, read_conditions, text_shape
from hedgerow.pipeline.reads_now import by_stated_facts, reads_now
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.start.stable_functions import meaning
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.tables.explained import Explained
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_FIGURES = ("seconds", "bytes")  # of an entry of a log
Key = tuple[str, tuple[str, ...]]  # the shape of a query's condition, and its columns


def changes(
    table: ManagedTable, source: Source, queries: Sequence[Query], kinds: Sequence[str], explained: Sequence[Explained]
) -> list[tuple[Change, Change]]:
    """Return the changes of the seconds and bytes of each query.

    `source`: the table itself. `kinds`: the kind of each query, by which the log's queries are found. `explained`: what
    each reads now."""
    if not queries:
        return []
    schema = table.schema
    keys = [_key(query, table.name, schema) for query in queries]
    kinds_of_key = defaultdict[Key, set[str]](set)
    for key, kind in zip(keys, kinds, strict=True):
        kinds_of_key[key].add(kind)
    rewrites = _rewrites(table)
    logged = _logged(table, rewrites)
    found = [logged.get(key, _Logged()) if len(kinds_of_key[key]) == 1 else _Logged() for key in keys]
    estimates = _estimated(table, source, queries, explained, _reads_before(table, rewrites, queries))
    return [
        (
            Change(*own.seconds, "measured") if None not in own.seconds else seconds,
            Change(*own.bytes).times(share) if None not in own.bytes else size,
        )
        for own, (seconds, size, share) in zip(found, estimates, strict=True)
    ]


# --- estimated ---


def _estimated(
    table: ManagedTable,
    source: Source,
    queries: Sequence[Query],
    explained: Sequence[Explained],
    then: Score | None,
) -> list[tuple[Change, Change, float]]:
    """Return for each query the estimated changes, and the share of the table's bytes in the columns that it reads.

    `then`: what the queries read before the first layout."""
    files = table.indexed().files
    speed = usual_speed(source) if int(files.sizes.sum()) >= SMALL_TABLE_BYTES else None
    estimates = []
    for i, (query, now) in enumerate(zip(queries, explained, strict=True)):
        columns = read_columns(query.columns(table.name), query.predicate(table.name))
        size = files.bytes_read(columns, files.visible)
        reads: list[tuple[float, float] | None] = [None, (len(now.opened), now.bytes_read)]
        if then is not None:
            reads[0] = then.queries[i].blocks_read * then.blocks, then.queries[i].rows_read * size
        if isinstance(query.wanted(table.name), AnyRows):
            reads = [None, None]  # Spark stops as soon as it has enough rows: when is not known
        before, after = (None if read is None or speed is None else speed.seconds(query.id, *read) for read in reads)
        size_before, size_now = (None if read is None else read[1] for read in reads)
        changed = Change(before, after), Change(size_before, size_now)
        estimates.append((*changed, size / max(1, files.total(columns))))
    return estimates


def _reads_before(table: ManagedTable, rewrites: Sequence[Mapping[str, Any]], queries: Sequence[Query]) -> Score | None:
    """Return what the queries read before the first layout; None if that table cannot be read any more.

    That is the version of a Delta table before it, or the table that a Parquet table was made of, as it is now."""
    with suppress(HedgerowError):
        if table.format.kind == "delta":
            if rewrites and (version := rewrites[-1].get("version")):
                before = open_source(table.spark, table.path, table.name, version=version - 1)
                return by_stated_facts(before, queries) if before.schema == table.schema else None
        elif (place := _made_of(table)) is not None:
            before = open_source(table.spark, place, table.name)
            return reads_now(before, queries) if before.schema == table.schema else None
    return None


def _made_of(table: ManagedTable) -> str | None:
    """Return the place of the table that a Parquet table was made of."""
    place = table.parts[0].entry.origin.get("source")
    return place if isinstance(place, str) else None


def _rewrites(table: ManagedTable) -> list[dict[str, Any]]:
    """Return the rewrites of the table, the newest first."""
    return [done for done in table.history() if done["operation"] == "apply"]


# --- logged ---


def _logged(table: ManagedTable, rewrites: Sequence[Mapping[str, Any]]) -> dict[Key, _Logged]:
    """Return the means of each kind of query in the logs, by its key."""
    if not rewrites:
        return {}
    first, last = (datetime.fromisoformat(rewrites[i]["time"]).timestamp() * 1e6 for i in (-1, 0))
    entries = _entries(table.spark, table.path, first, last)
    if table.format.kind != "delta" and (place := _made_of(table)) is not None:
        entries += _entries(table.spark, place, math.inf, math.inf)
    alike = defaultdict[tuple[str, tuple[str, ...]], list[Any]](list)
    for entry in entries:
        if not entry.redacted:
            alike[text_shape(entry.conditions), tuple(entry.columns)].append(entry)
    schema, session = table.schema, meaning(table.spark)
    by_key = defaultdict[Key, list[Any]](list)
    for some in alike.values():
        with suppress(HedgerowError):  # such as a column that the table does not have any more
            read = read_conditions(table.name, some[0].columns, some[0].conditions)
            for query in read.bind({table.name: schema}, session):
                by_key[_key(query, table.name, schema)] += some
    return {key: _Logged.of(some) for key, some in by_key.items()}


def _key(query: Query, table: str, schema: Iterable[str]) -> Key:
    p = query.written(table)
    columns = read_columns(query.columns(table), p)
    return shape(p), tuple(sorted({top(name).lower() for name in (schema if columns is None else columns)}))


def _entries(spark: SparkSession, place: str, first: float, last: float) -> list[Any]:
    """Return the different queries of a table's log, with the sums of those before `first` and from `last` on."""
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    try:
        return different_queries(QueryLog.of(spark, place), None, _sums(first, last))
    except failures:
        return []


def _sums(first: float, last: float) -> list[Column]:
    from pyspark.sql import functions as f

    at = f.unix_micros("at")
    periods = (("before", at < first), ("now", at >= last))
    return [
        of(f.when(period, f.col(name))).alias(f"{name}_{of.__name__}_{when}")
        for when, period in periods
        for name in _FIGURES
        for of in (f.sum, f.count)
    ]


@dataclass(frozen=True)
class _Logged:
    """The mean seconds of some logged queries, and the mean bytes of the files that they opened, before and now."""

    seconds: tuple[float | None, float | None] = (None, None)
    bytes: tuple[float | None, float | None] = (None, None)

    @staticmethod
    def of(entries: Sequence[Any]) -> _Logged:
        def mean(name: str, when: str) -> float | None:
            count = sum(entry[f"{name}_count_{when}"] for entry in entries)
            return sum(entry[f"{name}_sum_{when}"] or 0 for entry in entries) / count if count else None

        return _Logged(*((mean(name, "before"), mean(name, "now")) for name in _FIGURES))
