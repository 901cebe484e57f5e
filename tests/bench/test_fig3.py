"""The micro-benchmark has the paper's figures."""

from __future__ import annotations

import pytest

from bench import fig3
from bench.options import Options


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_figures_of_the_paper(seed: int) -> None:
    greedy, subtrees, *_ = fig3.run(Options("quick", seed))
    assert greedy["rows_read"] == pytest.approx(0.505, abs=0.002)
    assert greedy["bound"] == pytest.approx(0.104, abs=0.005)
    assert greedy["bound"] <= subtrees["rows_read"] <= 0.112
