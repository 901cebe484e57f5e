"""The term that divides rows best."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.curve_order import filtered_terms
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, conjunction
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.curves.range import selectivity
from tests.support.random_cases import a_predicate, a_table, bits


@given(st.integers(0, 2**32))
def test_selectivity_is_the_share_of_rows_by_the_slow_reference(seed: int) -> None:
    random = Random(seed)
    table = a_table(random)
    asked = [And((a_predicate(random, table, 1), a_predicate(random, table, 1))) for _ in range(4)]
    problem = Problem.build(Sample(Rows(table.columns), len(table), {}), tuple(asked), 1)
    for term in filtered_terms(problem):
        shares = []
        for p in asked:
            about = [kid for kid in p.children if (found := stepwise(kid)) and found.term == term]
            shares.append((bits(conjunction(*about), table) == T_BIT).mean() if about else 1.0)
        assert selectivity(problem, term) == pytest.approx(np.mean(shares))
