"""A table with liquid clustering: its rows can be laid out by Hedgerow, and given back to Delta's clustering."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from tests.support.answers import attached_to

ROWS = 4000


@pytest.fixture
def liquid(delta: SparkSession, tmp_path: Path) -> str:
    """Return the path of a clustered table whose rows Delta has clustered."""
    path = str(tmp_path / "liquid")
    delta.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, number INT, word STRING) USING delta CLUSTER BY (word)")
    insert(delta, path, 0)
    delta.sql(f"OPTIMIZE delta.`{path}`")
    return path


def insert(spark: SparkSession, path: str, first: int) -> None:
    rows_from(spark, first).write.format("delta").mode("append").save(path)


def rows_from(spark: SparkSession, first: int) -> DataFrame:
    numbered = spark.range(first, first + ROWS, 1, 3)
    return numbered.selectExpr("id", "CAST(id * 37 % 1000 AS INT) AS number", "concat('w', id % 11) AS word")


def laid_out(spark: SparkSession, path: str) -> hr.Table:
    workload = hr.Workload.from_sql([f"SELECT * FROM t WHERE number < {n}" for n in range(100, 1000, 100)])
    learned = hr.learn(spark, path, workload, options=hr.LearnOptions(block_rows=500), table="t")
    return hr.apply(spark, path, learned)


def providers(spark: SparkSession, path: str) -> dict[str, str | None]:
    """Return the provider of each file of the newest version, from Delta's own log."""
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
    listed = log.update(False, spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty()).allFiles()
    adds = [json.loads(add.json())["add"] for add in listed.collectAsList()]
    return {add["path"]: add.get("clusteringProvider") for add in adds}


def same(spark: SparkSession, path: str, condition: str) -> int:
    """Return how many files an attached query opens, after a look at its rows."""
    sql = f"SELECT * FROM delta.`{path}` WHERE {condition}"
    plain = sorted(spark.sql(sql).collect())
    with attached_to(spark):
        assert sorted(spark.sql(sql).collect()) == plain
        [scan] = hr.last_query(spark)
        return scan.files_opened


def test_optimize_leaves_our_files_and_clusters_the_others(delta: SparkSession, liquid: str) -> None:
    before = sorted(delta.read.format("delta").load(liquid).collect())
    table = laid_out(delta, liquid)
    ours = providers(delta, liquid)
    assert set(ours.values()) == {"hedgerow"} and len(ours) > 4
    assert same(delta, liquid, "number < 100") == 1
    delta.sql(f"OPTIMIZE delta.`{liquid}`")
    assert providers(delta, liquid) == ours
    insert(delta, liquid, ROWS)
    insert(delta, liquid, 2 * ROWS)
    delta.sql(f"OPTIMIZE delta.`{liquid}`")
    now = providers(delta, liquid)
    assert ours.items() <= now.items()
    assert {now[name] for name in now.keys() - ours.keys()} == {"liquid"}
    assert same(delta, liquid, "number < 100") == 1 + len(now) - len(ours)
    assert table.verify()["unknown_files"] == len(now) - len(ours)
    assert sorted(delta.read.format("delta").load(liquid).where(f"id < {ROWS}").collect()) == before


@pytest.mark.long
def test_what_we_append_is_ours(delta: SparkSession, liquid: str) -> None:
    table = laid_out(delta, liquid)
    table.append(rows_from(delta, ROWS))
    delta.sql(f"OPTIMIZE delta.`{liquid}`")
    assert set(providers(delta, liquid).values()) == {"hedgerow"}
    assert same(delta, liquid, "number < 100") < len(providers(delta, liquid))


@pytest.mark.long
def test_optimize_full_takes_the_table_back(delta: SparkSession, liquid: str) -> None:
    before = sorted(delta.read.format("delta").load(liquid).collect())
    laid_out(delta, liquid)
    delta.sql(f"OPTIMIZE delta.`{liquid}` FULL")
    assert set(providers(delta, liquid).values()) == {"liquid"}
    same(delta, liquid, "number < 100")
    assert sorted(delta.read.format("delta").load(liquid).collect()) == before


@pytest.mark.long
def test_a_rollback_gives_delta_its_files_again(delta: SparkSession, liquid: str) -> None:
    theirs = providers(delta, liquid)
    laid_out(delta, liquid).rollback()
    assert providers(delta, liquid) == theirs
