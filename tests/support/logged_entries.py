"""The entries of a table's log, for tests."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hedgerow.tables.query_log import QueryLog


def entries(spark: SparkSession, table: str) -> list[Any]:
    return QueryLog.of(spark, table).frame().orderBy("at", "query").collect()
