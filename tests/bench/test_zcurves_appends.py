"""Appends keep every row, and each way lays out the new rows as it says."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bench.memory import counted, fitted, index_of
from bench.options import Case, Options
from bench.suites import zcurves_appends as suite
from hedgerow.core.layouts.curve import Axis, CurveLayout

CASE: Case = ("zorder", {"axes": "values", "recurrence": 1})
OPTIONS = Options("quick")
UNUSED = CurveLayout((), (), ())


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ROWS", 2_000), ("BLOCKS", 40), ("QUERIES", 10)):
        monkeypatch.setattr(suite, name, {"quick": value})


def test_steps_bring_every_row_once_in_the_order_of_time() -> None:
    steps = suite.steps_of("flights", OPTIONS)
    assert [len(step.new.table) for step in steps] == [1_000] + 10 * [100]
    assert [len(step.every.table) for step in steps] == list(range(1_000, 2_001, 100))
    days = [step.new.table["flight_date"].to_pylist() for step in steps]
    assert all(max(before) <= min(after) for before, after in pairwise(days))


def test_ways() -> None:
    """`kept` puts what is newer than all first rows into the last rank; `same bits` draws new edges."""
    steps = suite.steps_of("flights", OPTIONS)
    first, _ = fitted(counted(steps[0].new, suite._problem(steps[0].new, CASE, OPTIONS), CASE[1]), CASE)
    assert isinstance(first, CurveLayout)
    new = steps[-1].new
    kept, same, again = (suite._layout(new, CASE, way, first, OPTIONS) for way in suite.WAYS[:3])
    assert (kept.axes, kept.pattern) == (first.axes, first.pattern)
    days = []
    for layout in (kept, same, again):
        assert int(index_of(layout, new).blocks.rows.sum()) == len(new.table)
        axes = [axis for axis in layout.axes if isinstance(axis, Axis)]
        day = next(axis for axis in axes if axis.features[0].path == ("flight_date",))  # type: ignore[union-attr]
        days.append(len(set(day.ranks(new.all_rows.rows).tolist())))
    assert days[0] == 1 < min(days[1:])


def test_shares_are_of_all_parts() -> None:
    steps = suite.steps_of("taxi", OPTIONS)[:2]
    layouts = [suite._layout(step.new, CASE, "learned for the new", UNUSED, OPTIONS) for step in steps]
    parts = [suite._index(step.new, CASE, own, OPTIONS) for step, own in zip(steps, layouts, strict=True)]
    queries = steps[1].every.unseen
    first, second = (suite.share_read([part], queries) for part in parts)
    assert suite.share_read(parts, queries) == pytest.approx((1_000 * first + 100 * second) / 1_100)


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "SHAPES", {"flights": suite.SHAPES["flights"]})
    monkeypatch.setattr(suite, "CASES", {"quick": (CASE,)})
    lines = list(suite.run(OPTIONS))
    assert [line["params"]["way"] for line in lines] == list(suite.WAYS)
    written = [line["details"]["rows_written"] for line in lines]
    assert written == [2_000, 2_000, 2_000, 1_000 + sum(range(1_100, 2_001, 100))]
    assert all(0 < line["rows_read"] < 1 for line in lines)
