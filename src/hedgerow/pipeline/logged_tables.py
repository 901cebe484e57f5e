"""logged_tables: makes a workload of the queries in the logs of several tables, with the joins between the tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import WorkloadError, counted
from hedgerow.core.workload.queries import Join, Query, Scan
from hedgerow.pipeline.inputs import tables_in
from hedgerow.pipeline.logged import grouped, occurrences, put_together, read_conditions
from hedgerow.spark.start.session import in_own_session
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@in_own_session
def logged_tables(spark: SparkSession, sources: str | Mapping[str, str], since: str | None = None) -> Workload:
    """Return the queries in the logs of several tables as a workload for `learn_tables`.

    A query that read several of the tables is one query, with the joins between them. One call of `log` has to have
    logged them, else the joins are not known.

    Args:
        sources: the place of each table, by its name; or a directory with a folder for each table, or a database.
            A table without a log is left out.
        since: a time such as 2026-11-01, before which queries do not count.
    """
    places = tables_in(spark, sources) if isinstance(sources, str) else sources
    logs = {name: QueryLog.of(spark, place) for name, place in places.items()}
    logs = {name: log for name, log in logs.items() if log.exists()}
    if not logs:
        raise WorkloadError(f"no queries of {', '.join(places) or 'any table'} were logged: start with hedgerow.log")
    queries = _different(logs, since)
    names = {log.root: name for name, log in logs.items()}
    came = occurrences(queries, [float(query.times) for query in queries])
    return put_together(queries, came, lambda place, _: _read(queries[place].parts, names))


def _different(logs: Mapping[str, QueryLog], since: str | None) -> list[Any]:
    """Return the different queries in the logs, as `different_queries` does for one.

    Each has `parts`: for each table that it reads, the table's name and what its log says of the scans."""
    from pyspark.sql import functions as f

    of_scans = ("conditions", "keys", "columns", "joins")
    parts = [
        log.frame(since).select(
            "query", "at", "seconds", "redacted", f.struct(f.lit(name).alias("table"), *of_scans).alias("part")
        )
        for name, log in logs.items()
    ]
    whole = (
        reduce(lambda one, other: one.unionAll(other), parts)
        .groupBy("query")
        .agg(
            f.sort_array(f.collect_list("part")).alias("parts"),
            *(f.max(name).alias(name) for name in ("at", "seconds", "redacted")),
        )
    )
    queries = grouped(whole, ["parts"], (), ", ".join(log.folder for log in logs.values()))
    if not queries:
        raise WorkloadError(f"the logs of {', '.join(logs)} have no queries" + (f" since {since}" if since else ""))
    return queries


def _read(parts: Sequence[Any], names: Mapping[str, str]) -> Workload:
    """Return the scans of a query, with their joins. `names`: of the tables, by the folders that the logs name."""
    scans: list[Scan] = []
    first: dict[str, int] = {}
    keyed: list[str] = []
    skipped: list[str] = []
    present = {part.table for part in parts}
    edges = [[_edges(text, names, present) for text in part.joins] for part in parts]
    for part, own in zip(parts, edges, strict=True):
        # A join with a given table says more than the keys that it happened to have.
        keys = ["" if joins else keys for keys, joins in zip(part["keys"], own, strict=True)]
        read = read_conditions(part.table, part.columns, part.conditions, keys)
        (query,) = read.queries
        if len(query.scans) != len(part.conditions):
            found = counted(len(query.scans), "scan")
            raise WorkloadError(f"it has {found} of {part.table}, where the log has {len(part.conditions)}")
        first[part.table] = len(scans)
        scans += query.scans
        keyed += query.keyed
        skipped += read.skipped
    for number, some in enumerate(edge for own in edges for edge in own):
        joins = tuple(
            Join(tuple(edge["columns"]), first[names[edge["root"]]] + edge["scan"], tuple(edge["other_columns"]))
            for edge in some
        )
        columns = tuple(dict.fromkeys(column for join in joins for column in join.columns))
        scans[number] = replace(scans[number], joins=joins, keys=columns)
    return Workload((Query("", tuple(scans), keyed=tuple(dict.fromkeys(keyed))),), tuple(skipped))


def _edges(text: str, names: Mapping[str, str], present: Collection[str]) -> list[Any]:
    """Return the joins that a log says of a scan, those with tables that are given and in the query."""
    return [edge for edge in json.loads(text or "[]") if names.get(edge["root"]) in present]
