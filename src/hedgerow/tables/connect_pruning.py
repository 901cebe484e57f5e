"""Prunes one query over Spark Connect: a plain query over a managed table gets a condition that leaves files out.

SELECT id FROM orders WHERE day = DATE '2024-05-01'
SELECT id FROM orders WHERE day = DATE '2024-05-01' AND _metadata.file_name NOT IN ('part-00001-...', ...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.paths import path_in_backticks
from hedgerow.spark.storage.source import schema_of
from hedgerow.sql.plain import plain_query
from hedgerow.tables.parquet.table import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def route_remotely(spark: SparkSession, sql: str) -> DataFrame:
    """The query's rows; a query that is not plain opens all files."""
    query = plain_query(sql)
    table = _managed_table(spark, query.table) if query is not None else None
    if query is None or table is None:
        return spark.sql(sql)
    skipped = ", ".join(map(quote_string, sorted(table.skipped_remotely(query.condition))))
    return spark.sql(query.with_condition(f"_metadata.file_name NOT IN ({skipped})") if skipped else sql)


def _managed_table(spark: SparkSession, name: str) -> ParquetTable | None:
    """The managed table of that name in a query, if it is one and has the columns that we wrote."""
    try:
        path = path_in_backticks(name, "parquet") or _location(spark, name)
        table = None if path is None else ParquetTable.open(spark, path.rstrip("/"))
        seen = schema_of(spark.table(name).schema)
    except HedgerowError:
        return None
    except spark_errors():
        return None  # no such table: Spark itself reports it when it runs the query
    is_same = table is not None and list(seen.items()) == list(table.schema.items()) and "_metadata" not in seen
    return table if is_same else None


def _location(spark: SparkSession, name: str) -> str | None:
    """The path of a plain Parquet table of the catalog; None for any other table."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = {row[0]: row[1] for row in rows}
    is_plain = (
        facts.get("Type") in ("MANAGED", "EXTERNAL")
        and str(facts.get("Provider")).lower() == "parquet"
        and not any(row[0].startswith("# Partition") or row[0] == "Bucket Columns" for row in rows)
        and facts.get("Storage Properties", "[]") in ("[]", "[serialization.format=1]")
    )
    return facts["Location"] if is_plain else None
