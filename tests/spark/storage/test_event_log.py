"""Reads event logs whose program still runs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.storage.event_log import past_queries

PLAN = {"nodeName": "Range", "simpleString": "", "metadata": {}, "metrics": [], "children": []}
EVENT = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
EVENTS = (
    {"Event": "SparkListenerApplicationStart", "App ID": "app-1", "Timestamp": 900},
    {"Event": f"{EVENT}Start", "executionId": 1, "time": 1000, "sparkPlanInfo": PLAN},
    {"Event": f"{EVENT}End", "executionId": 1, "time": 3500},
)


@pytest.mark.parametrize("name", ("app-1", "app-1.zstd", "app-1.inprogress", "app-1.zstd.inprogress"))
def test_a_log_of_a_running_program(tmp_path: Path, name: str) -> None:
    text = "".join(json.dumps(event) + "\n" for event in EVENTS).encode()
    content = pa.Codec("zstd").compress(text, asbytes=True) if "zstd" in name else text
    (tmp_path / name).write_bytes(content)
    [query] = past_queries(tmp_path)
    assert (query.application, query.execution, query.at, query.seconds, query.scans) == ("app-1", 1, 1000, 2.5, [])


def test_a_log_in_several_files(tmp_path: Path) -> None:
    """Only the first one names the application."""
    for number, events in enumerate((EVENTS[:1], EVENTS[1:]), 1):
        (tmp_path / f"events_{number}_app-1").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert [query.application for query in past_queries(tmp_path)] == ["app-1"]


@pytest.mark.parametrize("name", ("app-1.lz4", "app-1.lz4.inprogress"))
def test_other_compression(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(HedgerowError, match="compressed with lz4"):
        list(past_queries(tmp_path))
