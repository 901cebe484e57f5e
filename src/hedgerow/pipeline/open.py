"""table, read: opens tables that `apply` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, overload

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.spark.start.session import in_own_session, is_remote
from hedgerow.spark.storage.delta_log import is_delta
from hedgerow.tables.base import Table
from hedgerow.tables.delta.table import DeltaTable
from hedgerow.tables.parquet.drafts import finish_appends
from hedgerow.tables.parquet.stored import bring_back
from hedgerow.tables.parquet.table import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@overload
def open_table(spark: SparkSession, path: str) -> Table: ...
@overload
def open_table(spark: SparkSession, path: Mapping[str, str]) -> dict[str, Table]: ...
@in_own_session
def open_table(spark: SparkSession, path: str | Mapping[str, str]) -> Table | dict[str, Table]:
    """Open a table that `apply` wrote: a directory, or a Delta table by its path or name. Or several, by name."""
    if isinstance(path, Mapping):
        return {name: open_table(spark, place) for name, place in path.items()}
    if not is_remote(spark) and is_delta(spark, path):
        return DeltaTable.open(spark, path)
    path = path.rstrip("/")
    if is_remote(spark):
        return ParquetTable.open(spark, path)
    try:
        table = ParquetTable.open(spark, path)
    except HedgerowError:
        if not bring_back(spark, path):
            raise
        table = ParquetTable.open(spark, path)
    try:
        finish_appends(table)
    except HedgerowError as error:  # who opens it may not write
        warn(f"not all rows of {path} can be read yet", [str(error)])
    return table


@in_own_session
def read(spark: SparkSession, path: str, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
    """The matching rows of a table that `apply` wrote, from only the files that may hold some."""
    return open_table(spark, path).read(where, columns)
