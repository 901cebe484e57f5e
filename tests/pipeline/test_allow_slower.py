"""A layout that makes a kind of query much slower is not taken, and its losers are named before the rewrite."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import HedgerowWarning
from hedgerow.pipeline import estimate_seconds

ROWS, FILES = 4_000, 8
BY_NUMBER = [f"SELECT id FROM numbers WHERE number BETWEEN {i} AND {i + 3}" for i in range(0, 900, 100)]
BY_ID = "SELECT id FROM numbers WHERE id BETWEEN 1000 AND 1400"


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Each file has a range of ids, and all numbers."""
    place = str(tmp_path_factory.mktemp("source") / "numbers")
    frame = spark.range(ROWS).selectExpr("id", "CAST(pmod(id * 7919, 1000) AS INT) AS number")
    frame.repartitionByRange(FILES, "id").write.parquet(place)
    return place


def advised(spark: SparkSession, source: str, allow_slower: float) -> hr.Advice:
    options = hr.LearnOptions(block_rows=ROWS // FILES, allow_slower=allow_slower)
    return hr.advise(spark, source, hr.Workload.from_sql([*BY_NUMBER, BY_ID]), [], [["number"], ["id"]], options)


def test_a_layout_that_breaks_the_limit_is_not_the_best(spark: SparkSession, source: str) -> None:
    first, second = advised(spark, source, 0.1).proposals
    assert (first.name, first.why_not) == ("sorted by id", None)
    assert second.name == "sorted by number" and second.why_not
    assert "id >= 1000 AND id < 1401" in second.why_not
    assert "slower than allow_slower permits" in str(second)
    assert [kind.text for kind in second.slower] == ["id >= 1000 AND id < 1401"]


def test_slower_queries_can_be_allowed(spark: SparkSession, source: str) -> None:
    advice = advised(spark, source, 20.0)
    assert advice.proposals[0].name == "sorted by number"
    assert [kind.change for kind in advice.kinds] == ["gains", "slower"]


def test_several_tables_name_their_losers(
    spark: SparkSession, source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(estimate_seconds, "SMALL_TABLE_BYTES", 0)
    options, workload = hr.LearnOptions(block_rows=ROWS // FILES), hr.Workload.from_sql([*BY_NUMBER, BY_ID])
    with pytest.warns(HedgerowWarning, match="this layout of numbers makes some kinds of queries slower.*id >= 1000"):
        layouts = hr.learn_tables(spark, {"numbers": source}, workload, "range", options, steps=0, columns=("number",))
    (slower,) = layouts["numbers"].slower
    assert slower.rows_now < 0.4
    assert slower.rows_then > 0.9
    assert slower.files_now == FILES  # without an index, Spark opens a file to read its footer
