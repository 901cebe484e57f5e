"""MERGE checks for conflicts all files that its conditions on the target let pass, whichever rows its source joins.

So the rule leaves the target alone, see decision 0066. UPDATE and DELETE join nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.histories.test_interleaved import Stepped
from tests.support.lay_out import by_ranges

ROWS, FILES = 120, 6
# The source has keys of the last file only.
MERGE = "MERGE INTO delta.`{}` t USING (SELECT id AS i FROM range(100, 105)) ON {} WHEN MATCHED THEN UPDATE SET v = 500"


@pytest.fixture
def target(delta: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    rows = delta.range(ROWS).selectExpr("id", "id % 7 AS v").coalesce(1)
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
    hr.apply(delta, path, by_ranges(delta, path, "id", ROWS // FILES, ["id < 15"]))
    return path


@pytest.mark.parametrize(("on", "loses"), [("t.id = i", True), ("t.id = i AND t.id >= 100", False)])
def test_files_that_a_merge_checks(delta: SparkSession, target: str, on: str, loses: bool) -> None:
    def merge(spark: SparkSession, path: str) -> None:
        hr.attach(spark)
        spark.conf.set("hedgerow.runtimeBytes", "0")
        spark.sql(MERGE.format(path, on)).collect()

    running = Stepped(delta, merge, target)
    running.advance()
    running.advance()  # it has read the target
    files = delta.read.format("delta").load(target).groupBy("_metadata.file_name").agg({"id": "max"}).collect()
    first = min(row[1] for row in files)
    assert len(files) > 1
    assert first < 100
    delta.sql(f"DELETE FROM delta.`{target}` WHERE id <= {first}")  # the first file goes, and no other comes
    running.advance()
    assert ("DELTA_CONCURRENT_DELETE" in str(running.error)) == loses
    changed = delta.read.format("delta").load(target).where("v = 500").count()
    assert changed == (0 if loses else 5)


def test_changes_with_subqueries_are_refused_by_delta(delta: SparkSession, target: str) -> None:
    for change in ("DELETE FROM {}", "UPDATE {} SET v = 3"):
        with pytest.raises(AnalysisException, match=r"(?i)subquer"):
            delta.sql(f"{change.format(f'delta.`{target}`')} WHERE id IN (SELECT id FROM range(3))")
