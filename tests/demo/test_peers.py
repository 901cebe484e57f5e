"""The columns that the other layouts get."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hedgerow.demo.peers import columns_to_cluster_by, filtered_most
from hedgerow.sql.workload import Workload

WORKLOAD = Workload.from_sql(
    [
        *(f"SELECT * FROM things WHERE k BETWEEN {a} AND {a + 9} AND v < 90" for a in range(3)),
        *(f"SELECT * FROM things WHERE k = {a} AND open" for a in range(2)),
        "SELECT * FROM things WHERE tags['a'] = 'b' AND open",
    ]
)


def test_filtered_most() -> None:
    assert filtered_most(WORKLOAD, "things") == ["k", "open", "v", "tags"]


def test_delta_clusters_by_no_booleans_and_maps(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS k, true AS open, 2 AS v, map('a', 'b') AS tags")
    assert columns_to_cluster_by(frame, WORKLOAD, "things") == ["k", "v"]
