"""Fixtures of the tests of logs: a table of events, and copies of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.events_table import write_events


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("log") / "events"))


@pytest.fixture
def copy(spark: SparkSession, events: str, tmp_path: Path) -> str:
    """A table without a log."""
    (tmp_path / "events").mkdir()
    for file in Path(events).glob("*.parquet"):
        (tmp_path / "events" / file.name).write_bytes(file.read_bytes())
    return str(tmp_path / "events")
