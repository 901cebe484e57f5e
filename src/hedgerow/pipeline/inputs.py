"""Opens and checks the arguments of the functions that users call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, LayoutError, WorkloadError
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.spark.start.session import meaning
from hedgerow.spark.storage.source import Source, open_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_QUERIES = 200  # in an advice or a look of the autopilot: both take longer with each query


def opened_with_queries(
    spark: SparkSession, source: str | Sequence[str] | DataFrame, workload: Workload, table: str | None
) -> tuple[Source, tuple[Query, ...], tuple[str, ...]]:
    """Return the source under its name in the workload, its queries, and a sentence for each other query."""
    if not len(workload):
        raise WorkloadError("the workload has no query, so there is nothing to learn from")
    tables = workload.tables()
    opened = open_source(spark, source, table or (tables[0] if len(tables) == 1 else None))
    bound = workload.on(opened.name).bind({opened.name: opened.schema}, meaning(spark))
    if not len(bound):
        raise HedgerowError(f"no query of the workload fits the table {opened.name}: {bound.skipped[0]}")
    return opened, bound.queries, bound.skipped


def at_least_one(name: str, value: int | None) -> int | None:
    """Return the value; LayoutError if it is below 1."""
    if value is not None and value < 1:
        raise LayoutError(f"{name} has to be at least 1, not {value}")
    return value
