"""Where blocks of a curve end, and which term divides rows best."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.core.learning.curves.order import bounds_of, filtered_terms, selectivity
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import And, conjunction
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.core.pruning.block_stats import T_BIT
from hedgerow.core.pruning.row_batch import Rows
from tests.support.random_cases import a_predicate, a_table, bits


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=60),
    least=st.integers(1, 40),
)
@example(counts=[1, 3, 5, 2], least=5)
def test_blocks_have_half_to_twice_the_rows_where_keys_allow_it(counts: list[int], least: int) -> None:
    """A key that many rows share may make a block larger; none is smaller but the only one."""
    keys = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    bounds = bounds_of(keys, least)
    assert list(bounds) == sorted(set(bounds))
    block_of = np.searchsorted(np.array(bounds, np.uint64), np.arange(len(counts)), side="right")
    sizes = np.bincount(block_of, counts)
    if len(sizes) > 1:
        assert 2 * sizes.min() >= least
    for block, size in enumerate(sizes):
        largest = max(c for c, b in zip(counts, block_of, strict=True) if b == block)
        assert size <= max(2 * least, largest + least), (sizes, counts)


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
