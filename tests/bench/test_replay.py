"""A replay counts every row that is read or moved, and a layout learned on the way pays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from bench.data.errorlog_data import EXTERNAL
from bench.data.errorlog_queries import TEAMS, conditions
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


def test_a_rewrite_waits_until_it_pays() -> None:
    """A query that skips nine of ten rows saves 0.9 rows for each row; a rewrite reads and writes 2."""
    table = Table(pa.table({"x": list(range(100))[::-1]}), block_rows=10)
    table.insert(100)
    case = ("range", {"columns": "x", "recurrence": 1})
    table.rewrite(["SELECT * FROM t WHERE x < 10"] * 2, case, seed=0, if_it_pays=True)
    assert (table.touched, table.rewrites) == (100, 0)
    table.rewrite(["SELECT * FROM t WHERE x < 10"] * 3, case, seed=0, if_it_pays=True)
    assert (table.touched, table.rewrites) == (300, 1)
    assert table.scan(Compare(col("x"), "<", lit(10))) == 10


def test_in_the_changed_history_other_teams_ask() -> None:
    before, after = (set(range(TEAMS)[asking]) for asking in replay.HISTORIES["changed"])
    assert before and after and not before & after
    assert {tuple(range(TEAMS)[asking]) for asking in replay.HISTORIES["constant"]} == {tuple(range(TEAMS))}
    every = conditions(EXTERNAL, 0, 30, 3)
    assert every == conditions(EXTERNAL, 0, 30, 3, slice(None)) != conditions(EXTERNAL, 0, 30, 3, slice(1, None, 2))


@pytest.mark.long
def test_the_quick_form_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGEROW_BENCH_CACHE", str(tmp_path))
    cases = (*replay.CASES[:1], *replay.CASES[2:5])
    monkeypatch.setattr(replay, "CASES", cases)
    lines = list(replay.run(Options("quick")))
    for history in replay.HISTORIES:
        nothing, zorder, once, often, automatic = (case for case in lines if case["params"]["history"] == history)
        assert nothing["ratio"] == 1
        assert nothing["details"]["rows_written"] == 15_000
        written = [case["details"]["rows_written"] for case in (zorder, once, often, automatic)]
        assert written[0] == written[1] < written[2] <= written[3]
        scanned = [case["details"]["rows_scanned"] for case in (often, once, nothing)]
        assert scanned == sorted(scanned)
        assert max(often["ratio"], automatic["ratio"]) < 1
