"""`verify` says how many rows it has compared, and of the writes that it could not compare, why."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.delta_tables import by_number, more, write
from tests.support.things_table import ROWS

APPENDED = "1 write: an append to a Delta table has no checksum"
CHANGED = "1 write: some of its rows or files have been deleted or replaced since"


@pytest.mark.parametrize("vectors", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_why_rows_are_not_compared(delta: SparkSession, tmp_path: Path, vectors: str) -> None:
    path = write(delta, str(tmp_path / "things"), enableDeletionVectors=vectors)
    whole = by_number(delta, path).verify()
    assert (whole["rows_compared"], whole.get("not_compared")) == (ROWS, None)
    appended = hr.table(delta, path).append(more(delta)).verify()
    assert (appended["rows_compared"], appended["not_compared"]) == (ROWS, [APPENDED])
    delta.sql(f"DELETE FROM delta.`{path}` WHERE number < 5")
    changed = hr.table(delta, path).verify()
    rewritten = [] if vectors == "true" else ["1 file: not written by Hedgerow"]
    assert (changed["rows_compared"], set(changed["not_compared"])) == (0, {APPENDED, CHANGED, *rewritten})
    assert changed["files_with_statistics_checked"] > 0
    again = by_number(delta, path).verify()  # no file of the other writes is left
    assert (again["rows_compared"], again.get("not_compared")) == (again["rows"], None)
    delta.sql(f"OPTIMIZE delta.`{path}`")
    optimized = hr.table(delta, path).verify()
    assert (optimized["rows_compared"], optimized["not_compared"]) == (0, ["1 file: not written by Hedgerow"])
