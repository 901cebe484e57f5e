"""Rows go to the partition of their number, in any release of Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.write.by_number import divided, keys_of


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_each_number_has_its_partition(spark: SparkSession, count: int) -> None:
    numbered = spark.range(0, 2_000, 1, 3).select("id", (f.col("id") % count).cast("int").alias("number"))
    found = divided(numbered, count, f.col("number"))
    assert found.rdd.getNumPartitions() == count
    assert not found.where(f.col("number") != f.spark_partition_id()).count() and found.count() == 2_000


def test_many_partitions() -> None:
    assert len(set(keys_of(20_000).tolist())) == 20_000


@pytest.mark.parametrize("number", ["NULL", "-1", "3"])
def test_a_row_without_a_place_is_an_error(spark: SparkSession, number: str) -> None:
    rows = spark.range(3).withColumn("number", f.expr(f"CAST(if(id = 1, {number}, id) AS INT)"))
    with pytest.raises(spark_errors(), match="a row has no place"):
        divided(rows, 3, f.col("number")).collect()
