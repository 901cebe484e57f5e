"""How fast queries read a table is timed by one query of each common shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.learning.seconds import Speed
from hedgerow.pilot.file_seconds import seconds_as_it_is
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.spark.compute import measure_speed
from hedgerow.spark.compute.measure_speed import frame_of, measured_speed


def test_queries_of_one_shape_have_one_speed(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the names of columns are words of SQL, which conditions need in backticks."""
    place = str(tmp_path / "requests")
    columns = ["CAST(id AS INT) AS user", "id % 7 AS at", "hex(xxhash64(id)) AS word"]
    spark.range(0, 20_000, 1, 4).selectExpr(*columns).write.parquet(place)
    texts = [f"SELECT max(at) FROM requests WHERE user < {n}" for n in (5, 50)]
    texts += [f"SELECT count(*) FROM requests WHERE word LIKE '%{n}%'" for n in range(3)]
    source, queries, _ = opened_with_queries(spark, place, hr.Workload.from_sql(texts), "requests")
    speed = measured_speed(source, queries)
    assert speed is not None
    rates = [speed.of[query.id].byte for query in queries]
    assert len(set(rates[:2])) == len(set(rates[2:])) == 1
    width = source.widths
    shares = [(width["`at`"] + width["`user`"]) / sum(width.values()), width["word"] / sum(width.values())]
    told = Speed(1.0, 0.25, 0.0, 0.5, of={query.id: Speed(1.0, 0.25, 1e-3, 0.5) for query in queries})
    expected = 1 + 4 * 0.25 + 0.5 * source.size * 1e-3 * (2 * shares[0] + 3 * shares[1]) / 5
    assert seconds_as_it_is(source, queries, told) == pytest.approx(expected)


def test_rare_shapes_are_not_timed_where_that_takes_long(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "requests")
    spark.range(0, 2_000, 1, 2).selectExpr("id", "id % 7 AS at").write.parquet(place)
    texts = ["SELECT id FROM requests WHERE id < 5", "SELECT id FROM requests WHERE id < 9"]
    texts += ["SELECT at FROM requests WHERE at = 3"]
    source, queries, _ = opened_with_queries(spark, place, hr.Workload.from_sql(texts), "requests")
    monkeypatch.setattr(measure_speed, "_MOST_SECONDS", 0.0)
    speed = measured_speed(source, queries)
    assert speed is not None and speed.of.keys() == {queries[0].id, queries[1].id}
    assert speed.query > 0  # of queries of the shape that was left out


def test_a_file_takes_longer_to_open_for_more_columns(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "requests")
    wide = [f"hash(id, {i}) AS c{i}" for i in range(60)]
    spark.range(0, 4_000, 1, 4).selectExpr("id", *wide).write.parquet(place)
    texts = ["SELECT * FROM requests WHERE id < 5", "SELECT count(*) FROM requests WHERE c7 < 9"]
    source, queries, _ = opened_with_queries(spark, place, hr.Workload.from_sql(texts), "requests")
    speed = measured_speed(source, queries)
    assert speed is not None and speed.of[queries[0].id].file > speed.of[queries[1].id].file


@pytest.mark.parametrize("form", ["parquet", "delta", "delta of mapped columns"])
def test_queries_of_partitions_are_timed(delta: SparkSession, form: str, tmp_path: Path) -> None:
    """The values of a partition column are in the names of folders only; its type is the table's."""
    place = str(tmp_path / "requests")
    mode = "name" if "mapped" in form else "none"
    writer = delta.range(2_000).selectExpr("id", "CAST(id % 3 AS STRING) AS code").write.format(form.split()[0])
    writer.option("delta.columnMapping.mode", mode).partitionBy("code").save(place)
    texts = [f"SELECT id FROM requests WHERE code = '{n}' AND id < 500" for n in (1, 2)]
    source, queries, _ = opened_with_queries(delta, place, hr.Workload.from_sql(texts), "requests")
    assert measured_speed(source, queries) is not None
    frame = frame_of(source, source.files)
    assert frame.schema["code"].dataType == source.frame.schema["code"].dataType
    assert frame.where("code = '1'").count() == source.frame.where("code = '1'").count() > 0
    assert source.widths["id"] > 0 and (form == "parquet" or source.size < sum((source.sizes or {}).values()))
