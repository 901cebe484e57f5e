"""What `advise` says of a table and its replica is what the written ones then are; it takes them only where they pay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.advice import Advice
from tests.support.events_table import write_events

LEARNERS = ("qdtree", "range")
OPTIONS = hr.LearnOptions(block_rows=200, recurrence=1, storage=2)


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("source") / "events.parquet"), rows=8_000)


def of_columns(*columns: str) -> hr.Workload:
    most = {"id": 8000, "number": 1000}
    conditions = [
        f"{c} >= {part * most[c] // 25} AND {c} < {(part + 1) * most[c] // 25}" for c in columns for part in range(25)
    ]
    return hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions])


def asked(advice: Advice) -> list[str]:
    return [proposal.name for proposal in advice.proposals]


def test_two_copies_are_proposed_and_written(spark: SparkSession, source: str, tmp_path: Path) -> None:
    workload = of_columns("id", "number")
    advice = hr.advise(spark, source, workload, LEARNERS, options=OPTIONS, budget=600)
    best, second = advice.proposals[:2]
    assert best.name == f"{second.name}, 2 copies" and len(advice.proposals) == 3
    assert best.learned is not None and best.score is not None and second.score is not None
    assert best.score.rows_read < 0.8 * second.score.rows_read
    table = hr.apply(spark, source, best.learned, str(tmp_path / "events"), hr.WriteOptions(lookup_share=0.0))
    assert list(table.replicas) == ["tree-2"]
    assert table.score(workload).rows_read == pytest.approx(best.score.rows_read, rel=0.1)
    one = hr.advise(spark, source, workload, LEARNERS, options=replace(OPTIONS, storage=1), budget=600)
    assert sorted(asked(one)) == sorted(LEARNERS)


def test_a_second_copy_that_gains_little_is_not_advised(spark: SparkSession, source: str) -> None:
    advice = hr.advise(spark, source, of_columns("id"), LEARNERS, options=OPTIONS, budget=600)
    (copies,) = (p for p in advice.proposals if "2 copies" in p.name)
    assert copies.why_not == "more copies save too little" and "2 copies" not in advice.proposals[0].name


def test_a_delta_table_keeps_one_copy(delta: SparkSession, source: str, tmp_path: Path) -> None:
    place = str(tmp_path / "events")
    delta.read.parquet(source).select("id").write.format("delta").save(place)
    advice = hr.advise(delta, place, of_columns("id"), ["range"], options=OPTIONS, budget=600)
    assert asked(advice) == ["range"]
    assert "copies: one, for a Delta table cannot have replicas" in advice.rests_on
