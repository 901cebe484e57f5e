"""Layouts by ranges of a column, with which most tests of tables begin: then it is known which file holds which row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr


def asking(conditions: Iterable[str], table: str = "t") -> hr.Workload:
    """Return a query for each condition, of all columns."""
    return hr.Workload.from_sql([f"SELECT * FROM {table} WHERE {c}" for c in conditions])


def by_ranges(
    spark: SparkSession,
    source: str | DataFrame,
    column: str,
    block_rows: int,
    conditions: Iterable[str],
    table: str = "t",
    **options: Any,
) -> hr.Learned:
    """Return a layout in order of the column, in blocks of so many rows; its index will know the conditions."""
    rows = hr.LearnOptions(block_rows=block_rows, **options)
    return hr.learn(spark, source, asking(conditions, table), "range", rows, columns=[column], table=table)
