"""Others write folders `column=value` into a managed table, beside which Spark does not see the table's own files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import configured
from tests.support.answers import answer, attached_to
from tests.support.folder_contents import contents
from tests.support.lay_out import by_ranges


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_the_table_tells(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    source, path = str(tmp_path / "source"), str(tmp_path / "table")
    rows = spark.range(600).selectExpr("id", "id % 6 AS v", "id % 2 AS p")
    rows.write.parquet(source)
    learned = by_ranges(spark, source, "v", 100, [f"v = {v}" for v in range(6)])
    table = hr.apply(spark, source, learned, path)
    with configured(spark, sources__partitionOverwriteMode="dynamic"):
        rows.where("p = 0").write.mode(mode).partitionBy("p").parquet(path)
    plain = answer(spark.read.parquet(path).where("v = 2").select("id", "v", "p"))
    with attached_to(spark):
        assert answer(spark.read.parquet(path).where("v = 2").select("id", "v", "p")) == plain
    table, before = hr.table(spark, path), contents(Path(path))
    with pytest.raises(hr.HedgerowError, match="the folder p=0 hides its files from Spark"):
        table.verify()
    with pytest.raises(hr.HedgerowError, match=r"nothing can be appended to .*: others made the folder"):
        table.append(rows)
    assert contents(Path(path)) == before
    shutil.rmtree(Path(path, "p=0"))
    spark.catalog.refreshByPath(path)
    assert hr.table(spark, path).append(rows).verify()["rows"] == 1200
