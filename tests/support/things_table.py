"""A table of a few thousand rows in eight files by `id`, for what depends on sessions, functions and single files."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.tables.managed import ManagedTable
from tests.support.lay_out import by_ranges

ROWS, FILES = 2000, 8
COLUMNS = (
    "id",
    "CAST(id AS INT) AS number",
    "CAST(pmod(id * 37, 100) AS DECIMAL(6, 2)) AS price",
    "IF(id % 2 = 0, 'n', 'w') AS kind",
    "IF(id % 2 = 0, CAST(id % 50 AS STRING), concat('w', id % 50)) AS word",
    # a tab, a backslash and a t, and the name of a column
    "CASE id % 500 WHEN 3 THEN 'a\\tb' WHEN 4 THEN 'a\\\\tb' WHEN 5 THEN 'kind' ELSE 'n' END AS text",
    "TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS ts",
    "TIMESTAMP_NTZ '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, id) AS wall",
    "date_add(DATE '2024-01-01', CAST(id AS INT)) AS day",
    "IF(id < 1000, NULL, array(id, 1L)) AS items",
    "id >= 1000 AS late",
    "id % 500 < 250 AS early",
)


def write_things(spark: SparkSession, path: str, columns: Sequence[str] = COLUMNS) -> str:
    spark.range(ROWS).selectExpr(*columns).coalesce(1).write.parquet(path)
    return path


def by_id(spark: SparkSession, source: str, to: str, conditions: Sequence[str]) -> ManagedTable:
    """The source's rows in order of `id`; of each condition the index knows what it is in each file."""
    learned = by_ranges(spark, source, "id", ROWS // FILES, conditions, "things")
    table = hr.apply(spark, source, learned, to)
    assert len(table.known) == FILES
    return table
