"""-0.0 equals 0.0, also where Parquet's dictionary of a file has but one of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.lay_out import by_ranges

ODD = "CASE WHEN id % 3 > 0 THEN 1D + id % 5 WHEN id < 1000 THEN -0.0D ELSE 0.0D END"
COLUMNS = ("id", f"{ODD} AS odd", f"CAST({ODD} AS FLOAT) AS small", f"named_struct('x', {ODD}) AS parts")
ASKED = ("odd = 0.0D", "small = 0", "odd IN (0.0D, 77D)", "parts.x = 0.0D", "-0.0D = odd", "odd <=> 0.0D")
ROWS = 3000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_zeros(spark: SparkSession, tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "delta":
        request.getfixturevalue("delta")
    source, to = str(tmp_path / "odds"), str(tmp_path / "to") if kind == "parquet" else None
    spark.range(ROWS).selectExpr(*COLUMNS).coalesce(1).write.format(kind).save(source)
    learned = by_ranges(spark, source, "id", 500, ("id < 500", "odd = 3"), "odds")
    table = hr.apply(spark, source, learned, to)
    table = table.append(
        spark.range(3).selectExpr("id", "-0.0D AS odd", "0F AS small", "named_struct('x', -0.0D) AS parts")
    )
    for c in ASKED:
        assert table.read(where=c).count() == ROWS // 3 + 3, c
        assert hr.route(spark, f"SELECT * FROM {kind}.`{table.path}` WHERE {c}").count() == ROWS // 3 + 3, c
    assert spark.conf.get("parquet.enable.dictionary#odd", None) is None
