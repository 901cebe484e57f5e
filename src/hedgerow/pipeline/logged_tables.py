"""logged_tables: makes a workload of the queries in the logs of several tables, with the joins between the tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError, counted
from hedgerow.core.workload.queries import Join, Query, Scan
from hedgerow.pipeline.inputs import tables_in
from hedgerow.pipeline.logged import grouped, occurrences, put_together, read_conditions
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import own_name
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
    every = list(logs.values())
    queries = grouped(_entries_together(every, since), ["parts"], (), every[0].folder)
    if not queries:
        raise WorkloadError(f"the logs of {', '.join(logs)} have no queries" + (f" since {since}" if since else ""))
    names = {log.root: name for name, log in logs.items()}
    came = occurrences(queries, [float(query.times) for query in queries])
    return put_together(queries, came, lambda place, _: read_parts(parts_of(queries[place]), names))


@dataclass(frozen=True, slots=True)
class Part:
    """A query's entry in the log of one table, with a value for each scan; `root`: the table's folder."""

    root: str
    conditions: Sequence[str]
    keys: Sequence[str]
    columns: Sequence[str]
    joins: Sequence[str]


_OF_SCANS = tuple(f.name for f in fields(Part))[1:]


def _entries_together(logs: Sequence[QueryLog], since: str | None) -> DataFrame:
    """Return the queries in some logs, each once, with a part for each of its tables."""
    from pyspark.sql import functions as f

    of_query = ("at", "seconds", "redacted")
    parts = [
        log.frame(since).select("query", *of_query, f.struct(f.lit(log.root).alias("root"), *_OF_SCANS).alias("part"))
        for log in logs
    ]
    by_query = reduce(lambda one, other: one.unionAll(other), parts).groupBy("query")
    collected = f.sort_array(f.collect_list("part")).alias("parts")
    return by_query.agg(collected, *(f.max(name).alias(name) for name in of_query))


def different_with_others(log: QueryLog, others: Sequence[QueryLog], figures: Sequence[Column]) -> list[Any]:
    """Return the different queries of a table, as `different_queries` does, with `parts` of the other tables, too."""
    from pyspark.sql import functions as f

    own = f.filter("parts", lambda part: part["root"] == log.root)[0]
    together = _entries_together([log, *others], None).withColumn("own", own).where("own IS NOT NULL")
    entries = together.select("*", *(f.col(f"own.{name}").alias(name) for name in _OF_SCANS))
    return grouped(entries, [*_OF_SCANS, "parts"], figures, log.folder)


def joined_logs(log: QueryLog, queries: Sequence[Any], names: Mapping[str, str]) -> dict[str, QueryLog]:
    """Return the logs of the tables that queries of a log join, and that those are joined with, by a name for each.

    `names`: of this table and of some others, by their folders. The rest are called as their folders are."""
    found: dict[str, QueryLog] = {log.root: log}
    roots = _roots(text for query in queries for text in query.joins or ())
    while roots:
        root = roots.pop()
        if root not in found:
            with suppress(HedgerowError):  # such as a table that was removed
                other = QueryLog.of(log.spark, root)
                if other.exists():
                    found[root] = other
                    texts = other.frame().selectExpr("explode(joins) AS text").distinct().collect()
                    roots |= _roots(row.text for row in texts)
    del found[log.root]
    named = {names[root]: other for root, other in found.items() if root in names}
    taken = {name.lower() for name in names.values()}
    for number, (root, other) in enumerate(sorted(found.items()), 1):
        if root not in names:
            name = own_name(root, is_path=True)
            name = f"{name}_{number}" if name.lower() in taken else name
            taken.add(name.lower())
            named[name] = other
    return named


def _roots(texts: Iterable[str]) -> set[str]:
    """Return the folders of the tables that joins in a log lead to."""
    return {edge["root"] for text in set(texts) if text for edge in json.loads(text)}


def parts_of(query: Any) -> list[Part]:
    return [Part(*part) for part in query.parts]


def read_parts(parts: Sequence[Part], names: Mapping[str, str]) -> Workload:
    """Return the scans of a query, with their joins. `names`: of the tables, by the folders that the logs name."""
    scans: list[Scan] = []
    first: dict[str, int] = {}
    keyed: list[str] = []
    skipped: list[str] = []
    for part in parts:
        name = names[part.root]
        read = read_conditions(name, part.columns, part.conditions, part.keys)
        found = [scan for query in read.queries for scan in query.scans]
        if len(found) != len(part.conditions):
            known = counted(len(found), "scan")
            raise WorkloadError(f"it has {known} of {name}, where the log has {len(part.conditions)}")
        first[part.root] = len(scans)
        scans += found
        keyed += [column for query in read.queries for column in query.keyed]
        skipped += read.skipped
    for number, text in enumerate(text for part in parts for text in part.joins or [""] * len(part.conditions)):
        joins = tuple(
            Join(tuple(edge["columns"]), first[edge["root"]] + edge["scan"], tuple(edge["other_columns"]))
            for edge in json.loads(text or "[]")
            if edge["root"] in first  # not a table that is not given
        )
        columns = tuple(dict.fromkeys(column for join in joins for column in join.columns))
        scans[number] = replace(scans[number], joins=joins, keys=columns)
    return Workload((Query("", tuple(scans), keyed=tuple(dict.fromkeys(keyed))),), tuple(skipped))
