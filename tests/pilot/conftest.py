"""Small tables for the autopilot, on a machine where bytes take long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hedgerow.core.learning.seconds import RewriteCost, Speed
from hedgerow.pilot import look
from hedgerow.pipeline import outlook
from tests.support.events_table import write_events

SPEED = Speed(0.01, 0.01, 1e-6)


@pytest.fixture
def seconds_follow_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bytes take long; with the table of this test a real one spends its time otherwise."""
    for module in (look, outlook):
        monkeypatch.setattr(module, "usual_speed", lambda source: SPEED)
    monkeypatch.setattr(look, "assumed_cost", lambda byte: RewriteCost(0.0, 1e-8))
    monkeypatch.setattr("hedgerow.pipeline.estimate_seconds.SMALL_TABLE_BYTES", 0)


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("once") / "events"), 8000)


@pytest.fixture(scope="module")
def delta_events(delta: SparkSession, events: str) -> str:
    place = str(Path(events).with_name("delta"))
    columns = delta.read.parquet(events).select("id", "number", "price", "day")
    columns.repartition(2).write.format("delta").save(place)
    return place


@pytest.fixture
def parquet(events: str, tmp_path: Path) -> str:
    """A copy that a test may change."""
    return str(shutil.copytree(events, tmp_path / "events"))


@pytest.fixture
def delta_table(delta_events: str, tmp_path: Path) -> str:
    """A copy that a test may change."""
    return str(shutil.copytree(delta_events, tmp_path / "delta"))
