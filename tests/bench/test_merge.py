"""The suite of merging measures what it says."""

from __future__ import annotations

import numpy as np

from bench.options import Options
from bench.suites import merge


def test_lines() -> None:
    found = list(merge.run(Options("quick")))
    assert [line["params"]["vectors"] for line in found] == [256, 1024]
    assert all(line["blocks"] <= merge.BLOCKS and line["ratio"] > 1 for line in found)


def test_zeros() -> None:
    """Files of 10 rows: the first two groups share one, the third fills one and a half."""
    groups = np.array([[1, 0], [0, 0], [0, 1]], bool)
    assert merge.zeros_of(groups, np.array([5, 5, 15]), 10) == 1 + 1 + 1
