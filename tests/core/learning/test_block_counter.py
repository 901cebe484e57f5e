"""Rows counted by the blocks of several layouts, against a dictionary."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.learners.pando.forest import forest, layout_of
from tests.support.tree_problems import a_problem


@given(random=st.integers(0, 2**32).map(Random))
def test_combinations_are_those_of_the_rows(random: Random) -> None:
    _, problem = a_problem(random)
    rows = problem.sample.rows
    layouts = [layout_of(problem, nodes) for nodes in forest(problem, random.randint(1, 3), 1, 0.2, True, 100)]
    counted, weight = random.randint(0, len(rows)), random.choice((1.0, 2.0, 7.0))
    of_row = list(zip(*(layout.assign(rows).tolist() for layout in layouts), strict=True))
    combinations, counts = RowCounter(rows, weight, counted).count_together(layouts)
    expected = Counter(of_row[:counted])
    assert list(map(tuple, combinations.T.tolist())) == sorted(set(of_row))
    assert counts.tolist() == [max(1, round(expected[c] * weight)) for c in sorted(set(of_row))]
    assert counts.dtype == np.int64
