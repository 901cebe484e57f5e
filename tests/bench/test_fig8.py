"""The learning curve is what it says, on a month of a few hundred rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.options import Options
from bench.report.learning_curve import drawn
from bench.suites import fig8, tpch_month
from hedgerow.learners.woodblock.woodblock import Point


@pytest.mark.long
def test_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(tpch_month.PER_TEMPLATE, "quick", (1, 2))
    monkeypatch.setitem(tpch_month.BLOCK_ROWS_PER_SF, "quick", 5000)
    params = {"max_trees": 24, "at_once": 8, "budget_seconds": None}
    found, *others = fig8.run(Options("quick", 1, ("woodblock",), params, 0.01))
    assert not others
    assert (found["rows"], found["block_rows"], found["queries"], found["queries_unseen"]) == (769, 50, 15, 30)
    assert found["least_block"] >= 50
    assert 2 / 15 < found["bound"] < found["rows_read"] < 1  # two templates match everything
    assert found["trees"] >= 24
    assert [p[2] for p in found["curve"]] == sorted((p[2] for p in found["curve"]), reverse=True)


def test_drawing() -> None:
    assert drawn([]) == []
    assert drawn([Point(1.0, 32, 0.5, 0.6), Point(2.5, 64, 0.4, 0.4)], width=10) == [
        "    1.0 s       32 trees  50.00 %  #####-",
        "    2.5 s       64 trees  40.00 %  ####",
    ]
