"""table, read: opens tables that `apply` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, warn
from hedgerow.spark.start.session import in_own_session
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@in_own_session
def open_table(spark: SparkSession, path: str) -> ManagedTable:
    """Open a table that `apply` wrote: a directory, or a Delta table by its path or name."""
    table = ManagedTable.open(spark, path)
    try:
        table.finish()
    except HedgerowError as error:  # the user may have no right to write
        warn(f"not all rows of {path} can be read yet", [str(error)])
    return table


@in_own_session
def read(spark: SparkSession, path: str, where: str | None = None, columns: Sequence[str] | None = None) -> DataFrame:
    """Return the matching rows of a table that `apply` wrote, from only the files that may hold some."""
    return open_table(spark, path).read(where, columns)
