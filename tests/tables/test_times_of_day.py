"""Columns of type TIME: their bounds skip files, in one table and in several; conditions on them are read as Spark does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.spark.start.session import temporary_settings
from tests.support.answers import answer, opened_by_each

ROWS = 2000
CONDITIONS = [
    "clock < TIME '05:00:00'", "clock BETWEEN TIME '07:30:00.5' AND TIME'09:00:00'",
    "clock >= CAST('23:00:00' AS TIME)", "clock IN (TIME '00:00:00', TIME '12:00:00.25')", "clock < '02:00:00'",
    "CAST(clock AS TIME(0)) = CAST('12:00:00' AS TIME(0))", "hour(clock) = 3 OR clock IS NULL",
    "clock + INTERVAL '1' MINUTE < TIME '01:00:00'",
]  # fmt: skip


def visits(spark: SparkSession, start: int = 0, rows: int = ROWS) -> DataFrame:
    at = "IF(id % 50 = 0, NULL, make_time(CAST(id % 24 AS INT), CAST(id % 7 AS INT), CAST(id % 3 * 0.25 AS DECIMAL(16, 6))))"
    return spark.range(start, start + rows).selectExpr("id", f"{at} AS clock", f"CAST({at} AS TIME(0)) AS about")


@pytest.mark.parametrize("learner", ["qdtree", pytest.param("zorder", marks=pytest.mark.long)])
def test_bounds_of_times(spark: SparkSession, tmp_path: Path, learner: str) -> None:
    asked = [*CONDITIONS, "about < CAST('04:00:00' AS TIME(0))"]
    with temporary_settings(spark, {"spark.sql.timeType.enabled": "true"}):
        for name in ("visits", "tours"):
            visits(spark).repartition(2).write.parquet(str(tmp_path / name))
        sources = {name: str(tmp_path / name) for name in ("visits", "tours")}
        texts = [f"SELECT * FROM {name} WHERE {c}" for name in sources for c in asked]
        found = hr.learn_tables(spark, sources, hr.Workload.from_sql(texts), learner, hr.LearnOptions(block_rows=100))
        hr.apply_tables(spark, sources, found, str(tmp_path / "out"))
        for name in sources:
            table = hr.table(spark, str(tmp_path / "out" / name)).append(visits(spark, ROWS, 100))
            assert table.verify()["rows"] == ROWS + 100
            frame = spark.read.parquet(table.path)
            files = opened_by_each(frame, asked)
            for condition in CONDITIONS[:3]:
                assert files[condition][0] < files[condition][1], condition
            assert answer(table.read(asked[0])) == answer(frame.where(asked[0]))


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("clock < TIME'05:00:00'", "clock < TIME '05:00:00'"),
        ("clock < CAST('05:00:00.25' AS TIME)", "clock < TIME '05:00:00.250000'"),
        ("CAST(clock AS TIME(3)) < TIME '05:00:00'", "(CAST(clock AS TIME(3)) < TIME '05:00:00')"),
        ("CAST(clock AS TIME) < TIME '05:00:00'", "clock < TIME '05:00:00'"),
        ("clock < CAST('05:00:00.25' AS TIME(0))", "(clock < CAST('05:00:00.25' AS TIME(0)))"),
        ("clock < '05:00:00'", "(clock < '05:00:00')"),
    ],
)
def test_conditions(sql: str, read: str) -> None:
    workload = hr.Workload.from_sql([f"SELECT * FROM visits WHERE {sql}"])
    assert "TIMESTAMP" not in workload.queries[0].text
    bound = workload.bind({"visits": {"id": "bigint", "clock": "time(6)"}})
    assert predicate_text(bound.queries[0].predicate("visits")) == read
