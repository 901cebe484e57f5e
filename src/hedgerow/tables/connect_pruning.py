"""One query over Spark Connect: a plain one over a managed table says itself which files it can do without.

SELECT id FROM orders WHERE day = DATE '2024-05-01'
SELECT id FROM orders WHERE day = DATE '2024-05-01' AND _metadata.file_name NOT IN ('part-00001-...', ...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.source import schema_of
from hedgerow.sql.plain import plain_query
from hedgerow.tables.parquet.table import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def route_remotely(spark: SparkSession, sql: str) -> DataFrame:
    """The query's rows; whatever is not plain opens all files."""
    query = plain_query(sql)
    table = _managed(spark, query.table) if query is not None else None
    if query is None or table is None:
        return spark.sql(sql)
    skipped = ", ".join(map(quote_string, sorted(table.skipped_remotely(query.condition))))
    return spark.sql(query.with_condition(f"_metadata.file_name NOT IN ({skipped})") if skipped else sql)


def _managed(spark: SparkSession, name: str) -> ParquetTable | None:
    """The managed table that a name in a query stands for, if it is one with the columns that we wrote."""
    try:
        path = name[9:-1] if name.lower().startswith("parquet.`") else _location(spark, name)
        table = None if path is None else ParquetTable.open(spark, path.rstrip("/"))
        seen = schema_of(spark.table(name).schema)
    except HedgerowError:
        return None
    except spark_errors():
        return None  # no such table, or none of ours: Spark will say what it thinks of the query
    is_same = table is not None and list(seen.items()) == list(table.schema.items()) and "_metadata" not in seen
    return table if is_same else None


def _location(spark: SparkSession, name: str) -> str | None:
    """Of a plain Parquet table of the catalog."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    told = {row[0]: row[1] for row in rows}
    is_plain = (
        told.get("Type") in ("MANAGED", "EXTERNAL")
        and str(told.get("Provider")).lower() == "parquet"
        and not any(row[0].startswith("# Partition") or row[0] == "Bucket Columns" for row in rows)
        and told.get("Storage Properties", "[]") in ("[]", "[serialization.format=1]")
    )
    return unquote(told["Location"]) if is_plain else None
