"""The race over layouts: it refuses different answers, and counts the files that each layout opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.errors import HedgerowError
from hedgerow.demo.race import Way, race


def written(spark: SparkSession, place: Path, rows: int) -> dict[str, tuple[str, str]]:
    spark.range(0, rows, 1, 4).selectExpr("id", "id % 7 AS k").write.parquet(str(place))
    return {"numbers": ("parquet", str(place))}


def test_files_and_seconds(spark: SparkSession, tmp_path: Path) -> None:
    ways = [Way(name, written(spark, tmp_path / name, 100)) for name in ("one", "two")]
    (runs,) = race(spark, ways, ["SELECT k, count(*) FROM numbers WHERE id < 1000 GROUP BY k"], turns=1)
    assert {name: run.files for name, run in runs.items()} == {"one": 4, "two": 4}
    assert all(run.seconds > 0 for run in runs.values())


def test_different_answers(spark: SparkSession, tmp_path: Path) -> None:
    ways = [Way("one", written(spark, tmp_path / "one", 100)), Way("two", written(spark, tmp_path / "two", 101))]
    with pytest.raises(HedgerowError, match=r"the answers differ: one has .*100.*, two has .*101"):
        race(spark, ways, ["SELECT count(*) FROM numbers"], turns=2)


def test_equal_rows_at_a_limit(spark: SparkSession, tmp_path: Path) -> None:
    """Of rows with equal values of ORDER BY, LIMIT may return any, but no others."""
    ways = []
    for name, order in (("one", "id"), ("two", "99 - id")):
        place = str(tmp_path / name)
        spark.range(0, 100, 1, 1).selectExpr(f"{order} AS id", f"({order}) % 7 AS k").write.parquet(place)
        ways.append(Way(name, {"numbers": ("parquet", place)}))
    race(spark, ways, ["SELECT * FROM numbers ORDER BY k DESC LIMIT 5"], turns=1)
    more = [ways[0], Way("more", written(spark, tmp_path / "more", 300))]
    with pytest.raises(HedgerowError, match="the answers differ"):
        race(spark, more, ["SELECT * FROM numbers ORDER BY id DESC LIMIT 5"], turns=1)


def test_the_files_that_delta_chooses(delta: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "delta")
    delta.range(0, 100, 1, 4).selectExpr("id", "id % 7 AS k").write.format("delta").save(place)
    ways = [Way("plain", written(delta, tmp_path / "plain", 100)), Way("delta", {"numbers": ("delta", place)})]
    some, none, from_log = race(
        delta,
        ways,
        [
            "SELECT sum(k) FROM numbers WHERE id < 20",
            "SELECT sum(k) FROM numbers WHERE id < 0",
            "SELECT count(*) FROM numbers",
        ],
        turns=1,
    )
    assert [runs["plain"].files for runs in (some, none, from_log)] == [4, 4, 4]
    assert [runs["delta"].files for runs in (some, none, from_log)] == [1, 0, 0]
