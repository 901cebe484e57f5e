"""Other layouts of the same rows: Delta's ZORDER and its liquid clustering, by the columns that an expert would choose.

Both get files of a given size, and rows sorted inside of them, which Delta does not do by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.core.predicates.nodes import columns_of
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.workload.queries import Workload
from hedgerow.spark.start.session import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT_CLUSTERED = ("boolean", "map", "array", "struct", "variant", "binary")  # Delta clusters by none of them
_EVERY_COLUMN = "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '-1')"


def columns_to_cluster_by(frame: DataFrame, workload: Workload, table: str) -> list[str]:
    """Return the columns that queries have conditions on and Delta can cluster by, the most frequent first."""
    able = {f.name for f in frame.schema if f.dataType.typeName() not in _NOT_CLUSTERED}
    return [name for name in filtered_most(workload, table) if name in able]


def filtered_most(workload: Workload, table: str) -> list[str]:
    """Return the columns that queries have conditions on, the most frequent first."""
    counts: dict[str, int] = {}
    for query in workload:
        for name in sorted({column.path[0] for column in columns_of(query.predicate(table))}):
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def write_zorder(spark: SparkSession, frame: DataFrame, path: str, columns: Sequence[str], file_bytes: int) -> None:
    """Write the rows as a Delta table that ZORDER has rewritten."""
    _write(spark, frame, path, "")
    with _optimizing(spark, file_bytes):
        spark.sql(f"OPTIMIZE delta.{quote_name(path)} ZORDER BY ({_listed(columns)})")


def write_clustering(spark: SparkSession, frame: DataFrame, path: str, columns: Sequence[str], file_bytes: int) -> None:
    """Write the rows as a Delta table in liquid clustering."""
    _write(spark, frame, path, f"CLUSTER BY ({_listed(columns)})")
    with _optimizing(spark, file_bytes):
        spark.sql(f"OPTIMIZE delta.{quote_name(path)}")


def _write(spark: SparkSession, frame: DataFrame, path: str, cluster_by: str) -> None:
    columns = ", ".join(f"{quote_name(f.name)} {f.dataType.simpleString()}" for f in frame.schema)
    spark.sql(f"CREATE TABLE delta.{quote_name(path)} ({columns}) USING delta {cluster_by} {_EVERY_COLUMN}")
    frame.write.format("delta").mode("append").save(path)


@contextmanager
def _optimizing(spark: SparkSession, file_bytes: int) -> Iterator[None]:
    sizes = {f"spark.databricks.delta.optimize.{key}": str(file_bytes) for key in ("maxFileSize", "minFileSize")}
    with temporary_settings(spark, {**sizes, "spark.databricks.io.skipping.mdc.sortWithinPartitions": "true"}):
        yield


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(quote_name, columns))
