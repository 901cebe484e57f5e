"""The grid of features asks for what it says, and its table stands beside the thesis'."""

from __future__ import annotations

import numpy as np
import pytest

from bench.options import Options
from bench.report.markdown import pages
from bench.report.page import page
from bench.suites import features
from bench.suites.features import COLUMNS, GRID, RECURRING, Features, questions
from hedgerow.core.workload.statistics import comparison_points
from hedgerow.sql.workload import Workload


def test_columns_change_their_literals_and_conditions_recur() -> None:
    workload = Workload.from_sql(questions(100_000, 300, 0))
    points = comparison_points([q.predicate("log") for q in workload])
    assert all(len(points[column]) >= 10 for column in COLUMNS)
    texts = questions(100_000, 300, 0)
    assert all(sum(text.endswith(f"WHERE {condition}") for text in texts) >= 2 for condition in RECURRING)
    assert len(RECURRING) == max(cell.sop for cell in GRID)


def test_a_cost_is_fitted_to_the_rewrites() -> None:
    r = np.random.default_rng(0)
    parts = np.column_stack([np.ones(40), r.uniform(1, 4, 40), r.integers(0, 5, 40)])
    cost, error = features.fitted(parts, parts @ [2.0, 3.0, 0.5])
    assert cost == pytest.approx([2.0, 3.0, 0.5])
    assert error == pytest.approx(0)
    assert features.fitted(parts[:, :2], parts @ [2.0, 3.0, 0.5])[1] > 0.01


def test_the_table_stands_beside_the_thesis() -> None:
    def cell(of: Features, ratio: float, rows: int = 100) -> dict[str, object]:
        params = {"form": "full", "zorder": of.zorder, "sop": of.sop, "more": of.more}
        own = {"suite": "features", "learner": "sop_zorder", "params": params, "rows": rows, "ratio": ratio}
        return {**own, "details": {"skipped": 0.5}, "seed": 0, "commit": "abc1234"}

    lines = [cell(Features(1, 0), 2.0, rows=50), cell(Features(1, 0), 1.1), cell(Features(1, 0, more=12), 3.0)]
    lines += [cell(Features(1, 4), 0.8), cell(Features(2, 4), 1.0)]
    text = pages(page(lines))["results/thesis.md"]
    assert "| off by a factor of, 100 rows (the thesis) | 0 conditions in groups | 4 conditions in groups |" in text
    assert "| 1 columns | 1.10 (1.11) | 1.25 (1.08) |\n| 2 columns |  | 1.00 (1.29) |" in text


@pytest.mark.long
def test_the_quick_form() -> None:
    *cells, cost = features.run(Options("quick"))
    assert {line["learner"] for line in cells} == {"zorder", "sop_zorder"}
    assert all(0 <= line["details"]["skipped"] < 1 for line in cells)
    assert set(cost["details"]["seconds_per_gb"]) == {"fixed", "base", "zorder", "sop", "more", "row groups"}
