"""What a query reads of a table as it is: by the facts that Delta itself skips files by, or by the index."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.predicates.nodes import Compare, col, conjunction, lit
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.reads_now import by_stated_facts, reads_now
from hedgerow.spark.storage.source import open_source
from hedgerow.sql.joined_conditions import below

FILES = 12
CONDITIONS = (
    "number < 100",
    "device.model = 3",
    "device.`fw.version` = 'v07'",
    "device.model = 2 AND device.`fw.version` < 'v03'",
    "device.inner.day >= DATE '2026-01-09'",
    "device.model IS NULL",
    "part = 1",
    "part = 1 AND device.model = 4",
    "`zähler` BETWEEN 5 AND 6",
    "tags['a'] = 'x'",
    "to_date(at) = DATE '2026-01-09'",
    "CAST(at AS DATE) < DATE '2026-01-04'",
)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_delta_skips_by_the_facts_of_its_log(delta: SparkSession, mode: str, tmp_path: Path) -> None:
    """Fields of structs, too, and columns that have other names in the files."""
    place = str(tmp_path / "readings")
    frame = delta.range(0, 1_200, 1, FILES).selectExpr(
        "id AS number",
        "named_struct('model', CAST(id / 100 AS INT), 'fw.version', concat('v', lpad(CAST(id / 100 AS INT), 2, '0')), "
        "'inner', named_struct('day', date_add(DATE '2026-01-01', CAST(id / 100 AS INT)))) AS device",
        "CAST(id / 600 AS INT) AS part",
        "CAST(id / 100 AS INT) AS `zähler`",
        "map('a', 'x') AS tags",
        "timestamp_seconds(1767225600 + CAST(id / 100 AS INT) * 86400 + id % 100 * 60) AS at",
    )
    frame.write.format("delta").option("delta.columnMapping.mode", mode).partitionBy("part").save(place)
    delta.read.format("delta").load(place).createOrReplaceTempView("readings")
    asked = [f"SELECT number FROM readings WHERE {condition}" for condition in CONDITIONS]
    asked += ["SELECT count(*) FROM readings", "SELECT number FROM readings", "SELECT sum(number) FROM readings"]
    source, queries, _ = opened_with_queries(delta, place, hr.Workload.from_sql(asked), "readings")
    scores = by_stated_facts(source, queries).queries
    told = {text: round(score.blocks_read * FILES) for text, score in zip(asked, scores, strict=True)}
    assert told == {text: len(delta.sql(text).inputFiles()) for text in asked}
    assert min(told.values()) == 0 and 1 in told.values() and FILES in told.values()


def test_after_a_rollback(delta: SparkSession, tmp_path: Path) -> None:
    """The index knows none of the files, so queries skip by what Delta's log states."""
    place = str(tmp_path / "numbers")
    delta.range(0, 8000, 1, 4).selectExpr("id", "id * 7919 % 1000 AS price").write.format("delta").save(place)
    asked = hr.Workload.from_sql(
        [f"SELECT * FROM numbers WHERE id BETWEEN {i} AND {i + 9}" for i in range(0, 7000, 999)]
    )
    learned = hr.learn(delta, place, asked, "range", hr.LearnOptions(block_rows=1000), columns=["price"])
    source = open_source(delta, place)
    queries = asked.bind({"numbers": source.schema}).queries
    before = reads_now(source, queries).rows_read
    hr.apply(delta, place, learned)
    assert before < 0.4 < reads_now(open_source(delta, place), queries).rows_read
    hr.table(delta, place).rollback()
    assert reads_now(open_source(delta, place), queries).rows_read == before


def test_conditions_on_rows_that_the_index_does_not_join(spark: SparkSession, tmp_path: Path) -> None:
    """They skip nothing, and the query counts all the same, with its other conditions."""
    place, ours = str(tmp_path / "numbers"), str(tmp_path / "ours")
    spark.range(8000).selectExpr("id", "id % 10 AS okey").write.parquet(place)
    asked = hr.Workload.from_sql([f"SELECT * FROM numbers WHERE id < {i}" for i in range(100, 1000, 100)])
    hr.apply(
        spark, place, hr.learn(spark, place, asked, "range", hr.LearnOptions(block_rows=1000), columns=["id"]), ours
    )
    source = open_source(spark, ours, "numbers")
    joined = below(Compare(col("day"), "<", lit(5)), "okey->orders")
    (query,) = hr.Workload.from_sql(["SELECT * FROM numbers WHERE id < 300"]).bind({"numbers": source.schema}).queries
    scan = replace(query.scans[0], predicate=conjunction(query.scans[0].predicate, joined))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = reads_now(source, [query, replace(query, scans=(scan,))])
    assert found.queries[0].rows_read == found.queries[1].rows_read < 0.3
