"""The micro-benchmark has the paper's figures."""

from __future__ import annotations

import pytest

from bench.options import Options
from bench.suites import fig3


def test_figures_of_the_paper() -> None:
    greedy, subtrees, default, agent = fig3.run(Options("quick"))
    assert greedy["rows_read"] == pytest.approx(0.505, abs=0.002)
    assert greedy["bound"] == pytest.approx(0.104, abs=0.005)
    assert max(line["rows_read"] for line in (subtrees, default, agent)) <= 0.112


@pytest.mark.parametrize("seed", [1, 2])
def test_other_draws(seed: int) -> None:
    (found,) = fig3.run(Options("quick", seed, learners=("qdtree",)))
    assert found["bound"] <= found["rows_read"] <= 0.112
