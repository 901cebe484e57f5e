"""Opens and checks the arguments of the functions that take several tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, WorkloadError, warn
from hedgerow.core.workload.queries import Workload
from hedgerow.spark.start.session import meaning
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source, open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tables_in(spark: SparkSession, place: str) -> dict[str, str]:
    """Return the places of the tables in a folder or a database of the catalog, by name; empty if it is neither.

    In a folder, each table is a folder of its name."""
    folder = Folder(spark, place.rstrip("/"))
    places = {n: f"{folder.root}/{n}" for n in folder.folders() if "=" not in n}
    if places or "/" in place or not spark.catalog.databaseExists(place):
        return places
    return {t.name: f"{place}.{t.name}" for t in spark.catalog.listTables(place) if not t.isTemporary}


def opened_tables(spark: SparkSession, sources: str | Mapping[str, Any]) -> dict[str, Source]:
    """Open the tables; HedgerowError if there is none."""
    if isinstance(sources, str):
        sources = tables_in(spark, sources)
    if not sources:
        raise HedgerowError("there is no table: name a directory with a folder for each, a database, or tables by name")
    return {name: open_source(spark, source, name) for name, source in sources.items()}


def bound_to(tables: Mapping[str, Source], workload: Workload) -> Workload:
    """Return the queries that fit the tables; WorkloadError if there is none."""
    spark = next(iter(tables.values())).frame.sparkSession
    bound = workload.bind({name: source.schema for name, source in tables.items()}, meaning(spark))
    if not any(q.reads(name) for q in bound for name in tables):
        why = f": {bound.skipped[0]}" if bound.skipped else ""
        raise WorkloadError(f"no query of the workload fits the tables {', '.join(tables)}{why}")
    warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
    names = {name.lower() for name in tables}
    others = sorted({table for table in bound.tables() if table.lower() not in names})
    warn("some tables are not among those given", [f"queries read {table}, too" for table in others])
    return bound
