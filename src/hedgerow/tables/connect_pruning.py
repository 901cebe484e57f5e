"""Leaves files out of a query over Spark Connect, where only plain conditions can be evaluated.

SELECT id FROM orders WHERE day = DATE '2024-05-01'
SELECT id FROM orders WHERE day = DATE '2024-05-01' AND _metadata.file_name NOT IN ('part-00001-...', ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.paths import path_in_backticks
from hedgerow.spark.storage.source import schema_of
from hedgerow.sql.simple_conditions import simple_condition, simple_query
from hedgerow.tables.parquet.folder import open_folder
from hedgerow.tables.stored import StoredTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def skipped_remotely(table: StoredTable, where: str | None) -> set[str]:
    """Return the names of the files to leave out of a query with this condition."""
    schema = table.schema
    hides_metadata = any(name.lower() == "_metadata" for name in schema)  # hides Spark's own `_metadata`
    p = None if where is None or hides_metadata else simple_condition(where, schema)
    if p is None:
        return set()
    indexed = table.indexed()
    opened = indexed.choose(p).opened
    return {name for name, is_open in zip(indexed.snapshot.files.names, opened, strict=True) if not is_open}


def read_remotely(table: StoredTable, where: str | None, columns: Sequence[str] | None) -> DataFrame:
    """Return the matching rows, from just the files that may hold some."""
    frame = table.format.rows()
    skipped = ", ".join(map(quote_string, sorted(skipped_remotely(table, where))))
    frame = frame.where(f"_metadata.file_name NOT IN ({skipped})") if skipped else frame
    frame = frame if where is None else frame.where(where)
    return frame if columns is None else frame.select(*columns)


def route_remotely(spark: SparkSession, sql: str) -> DataFrame:
    """Return the query's rows; a query that is not plain opens all files."""
    query = simple_query(sql)
    table = _managed_table(spark, query.table) if query is not None else None
    if query is None or table is None:
        return spark.sql(sql)
    skipped = ", ".join(map(quote_string, sorted(skipped_remotely(table, query.condition))))
    return spark.sql(query.with_condition(f"_metadata.file_name NOT IN ({skipped})") if skipped else sql)


def _managed_table(spark: SparkSession, name: str) -> StoredTable | None:
    """Return the managed table of that name in a query, if it is one and has the columns that we wrote."""
    try:
        path = path_in_backticks(name, "parquet") or _location(spark, name)
        table = None if path is None else StoredTable(*open_folder(spark, path.rstrip("/")))
        seen = schema_of(spark.table(name).schema)
    except HedgerowError:
        return None
    except spark_errors():
        return None  # no such table: Spark itself reports it when it runs the query
    is_same = table is not None and list(seen.items()) == list(table.schema.items()) and "_metadata" not in seen
    return table if is_same else None


def _location(spark: SparkSession, name: str) -> str | None:
    """Return the path of a plain Parquet table of the catalog; None for any other table."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = {row[0]: row[1] for row in rows}
    is_plain = (
        facts.get("Type") in ("MANAGED", "EXTERNAL")
        and str(facts.get("Provider")).lower() == "parquet"
        and not any(row[0].startswith("# Partition") or row[0] == "Bucket Columns" for row in rows)
        and facts.get("Storage Properties", "[]") in ("[]", "[serialization.format=1]")
    )
    return facts["Location"] if is_plain else None
