"""The tables that a table's queries join, by their logs: the conditions on their rows may divide its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hedgerow.core.workload.queries import Query
from hedgerow.pipeline.foreign_keys import find_keys
from hedgerow.pipeline.inputs import bound_to, opened_tables, opened_with_queries
from hedgerow.pipeline.learn_tables import joined_queries
from hedgerow.spark.compute.joins import NO_JOINS, Joins
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def names_of_joined(managed: ManagedTable | None) -> dict[str, str]:
    """Return the names of the tables that the index describes joined rows of, by their folders."""
    if managed is None:
        return {}
    return {
        QueryLog.of(managed.spark, place).root: step.other
        for stored in managed.newest.entry.joined
        for step, place in zip(stored.joined.steps, stored.places, strict=True)
    }


def why_not_judged(managed: ManagedTable | None, others: Mapping[str, QueryLog]) -> str | None:
    """Return why no other layout is looked for, if the present one depends on tables whose queries are not known."""
    stored = () if managed is None else managed.newest.entry.joined
    unknown = sorted({step.other for s in stored for step in s.joined.steps if step.other not in others})
    return f"its layout depends on {', '.join(unknown)}, and their queries were not logged" if unknown else None


def opened_with_joined(
    spark: SparkSession, table: str, name: str, workload: Workload, others: Mapping[str, QueryLog]
) -> tuple[Source, Sequence[Query], Joins]:
    """Open a table; return it, its queries with their conditions on other tables' rows, and these rows."""
    if not others:
        source, queries, _ = opened_with_queries(spark, table, workload, name)
        return source, queries, NO_JOINS
    tables = opened_tables(spark, {name: table, **{other: log.root for other, log in others.items()}})
    bound = bound_to(tables, workload)
    joined, joins = joined_queries(bound, name, tables, find_keys(tables, bound))
    return tables[name], joined, joins
