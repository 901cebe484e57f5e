"""The month's table is made once, is the same everywhere, and leaves nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.data import tpch_wide
from tests.support.digest import digest


def test_a_month_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    folder = tpch_wide.wide(0.01, "1996-09")
    tables = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    assert [len(t) for t in tables] == [191] * 4
    assert digest(tables[0].slice(0, 3).to_pylist()) == "b5d8521bd387afc2"
    assert [f.name for f in tmp_path.iterdir()] == [folder.parent.parent.name]
    assert [f.name for f in folder.parent.parent.iterdir()] == ["sf0.01"]

    monkeypatch.setattr(tpch_wide, "generate", lambda *_: pytest.fail("it was made already"))
    assert sorted(f.name for f in folder.parent.iterdir()) == ["1995-03", "1996-09"]
    assert tpch_wide.wide(0.01, "1995-03") == folder.with_name("1995-03")


def test_a_run_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(tpch_wide, "generate", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tpch_wide.wide(0.01, "1995-03")
    assert not [f for f in tmp_path.rglob("*") if f.name.startswith("sf")]
