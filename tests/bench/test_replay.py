"""A replay counts every row that is read or moved, and a layout learned on the way pays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from bench.options import Options
from bench.suites import replay
from bench.suites.replay import Table
from hedgerow.core.predicates.nodes import Compare, col, lit


def test_what_is_counted() -> None:
    table = Table(pa.table({"x": list(range(100))}), block_rows=10)
    table.insert(30)
    table.insert(55)
    assert table.touched == 55
    assert table.scan(Compare(col("x"), "=", lit(12))) == 10
    assert table.scan(Compare(col("x"), ">=", lit(50))) == 5  # a day's last block is as small as it came
    table.rewrite(["SELECT * FROM t WHERE x < 20"], ("range", {"columns": "x"}), seed=0)
    assert (table.touched, table.since, len(table.late)) == (55 + 2 * 55, 55, 0)
    table.insert(60)
    assert table.scan(Compare(col("x"), ">=", lit(0))) == 60  # no row is lost, none there twice


@pytest.mark.long
def test_the_quick_form_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    nothing, zorder, once, often = replay.run(Options("quick"))
    assert nothing["ratio"] == 1
    assert nothing["details"]["rows_written"] == 15_000
    assert zorder["details"]["rows_written"] == once["details"]["rows_written"] < often["details"]["rows_written"]
    assert often["details"]["rows_scanned"] < once["details"]["rows_scanned"] < nothing["details"]["rows_scanned"]
    assert often["ratio"] < 1
