"""Leaves files out of a query over Spark Connect, where only simple conditions can be evaluated.

A server with Hedgerow's extension leaves them out itself, for every condition; then queries are sent as they are.

SELECT id FROM orders WHERE day = DATE '2024-05-01'
SELECT id FROM orders WHERE day = DATE '2024-05-01' AND _metadata.file_name NOT IN ('part-00001-...', ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.spark.optimizer.server import skips_files
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.paths import path_in_backticks, plain_path
from hedgerow.spark.storage.source import schema_of
from hedgerow.sql.simple_conditions import simple_condition, simple_query
from hedgerow.tables.parquet.folder import open_folder
from hedgerow.tables.stored import StoredTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def files_remotely(table: StoredTable, where: str | None, version: int | None) -> list[str]:
    """Return the names of the files that a query with this condition opens."""
    if skips_files(table.spark):
        paths = [plain_path(unquote(url)) for url in read_remotely(table, where, None, version).inputFiles()]
        return sorted(path.removeprefix(f"{plain_path(table.path)}/") for path in paths)
    return sorted(set(table.format.snapshot(version).files.names) - _skipped(table, where))


def _skipped(table: StoredTable, where: str | None) -> set[str]:
    """Return the names of the files to leave out of a query with this condition."""
    schema = table.schema
    hides_metadata = any(name.lower() == "_metadata" for name in schema)  # the table's column hides Spark's
    p = None if where is None or hides_metadata else simple_condition(where, schema)
    if p is None:
        return set()
    indexed = table.indexed()
    opened = indexed.choose(p).opened
    return {name for name, is_open in zip(indexed.snapshot.files.names, opened, strict=True) if not is_open}


def read_remotely(
    table: StoredTable, where: str | None, columns: Sequence[str] | None, version: int | None
) -> DataFrame:
    """Return the matching rows, read only from files that may have some."""
    frame, in_opened_files = table.format.rows(version), _in_opened_files(table, where)
    frame = frame if in_opened_files is None else frame.where(in_opened_files)
    frame = frame if where is None else frame.where(where)
    return frame if columns is None else frame.select(*columns)


def _in_opened_files(table: StoredTable, where: str | None) -> str | None:
    """Return a condition that leaves out the skipped files of a query; None if no file is skipped."""
    if skips_files(table.spark):
        return None
    skipped = ", ".join(map(quote_string, sorted(_skipped(table, where))))
    return f"_metadata.file_name NOT IN ({skipped})" if skipped else None


def route_remotely(spark: SparkSession, sql: str) -> DataFrame:
    """Return the query's rows; a query that is not simple opens all files."""
    query = None if skips_files(spark) else simple_query(sql)
    table = _managed_table(spark, query.table) if query is not None else None
    if query is None or table is None:
        return spark.sql(sql)
    in_opened_files = _in_opened_files(table, query.condition)
    return spark.sql(sql if in_opened_files is None else query.with_condition(in_opened_files))


def _managed_table(spark: SparkSession, name: str) -> StoredTable | None:
    """Return the managed table that a query names so, if the query sees the columns that Hedgerow wrote."""
    try:
        path = path_in_backticks(name, "parquet") or _location(spark, name)
        table = None if path is None else StoredTable(*open_folder(spark, path.rstrip("/")))
        columns = schema_of(spark.table(name).schema)
    except HedgerowError:
        return None
    except spark_errors():
        return None  # there is no such table; Spark reports it when it runs the query
    is_same = table is not None and list(columns.items()) == list(table.schema.items()) and "_metadata" not in columns
    return table if is_same else None


def _location(spark: SparkSession, name: str) -> str | None:
    """Return the path of a Parquet table of the catalog without partitions and buckets; None for any other table."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    facts = {row[0]: row[1] for row in rows}
    is_folder = (
        facts.get("Type") in ("MANAGED", "EXTERNAL")
        and str(facts.get("Provider")).lower() == "parquet"
        and not any(row[0].startswith("# Partition") or row[0] == "Bucket Columns" for row in rows)
        and facts.get("Storage Properties", "[]") in ("[]", "[serialization.format=1]")
    )
    return facts["Location"] if is_folder else None
