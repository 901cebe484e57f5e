"""Layouts of several copies, learned in turns: the sum of the minima, which never rises."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hedgerow.core.learning.complement import fit_complement, rows_read
from hedgerow.core.learning.problem import Learner
from hedgerow.core.learning.replicas import fit_replicas
from hedgerow.learners.curves.range import Range
from hedgerow.learners.qdtree.qdtree import QdTree
from tests.core.learning.test_complement import slowly, two_kinds
from tests.support.tree_problems import a_problem

LEARNERS: list[Learner] = [QdTree(), QdTree("skip", cells=1), Range()]


@given(random=st.integers(0, 2**32).map(Random), copies=st.integers(1, 3))
def test_together_is_the_sum_of_the_minima_and_no_more_than_one_turn_reads(random: Random, copies: int) -> None:
    _, problem = a_problem(random, 60)
    assume(problem.predicates)
    learner = random.choice(LEARNERS)
    found = fit_replicas(learner, problem, copies)
    weights = np.array(problem.weights) / sum(problem.weights)
    assert len(found.layouts) == copies
    minima = np.min([slowly(layout, problem) for layout in found.layouts], axis=0)
    first = learner.fit(problem)
    assert (found.alone, found.together) == pytest.approx((weights @ slowly(first, problem), weights @ minima))
    one_turn = found.alone
    if copies > 1:
        one_turn = fit_complement(learner, problem, rows_read(first, problem).tolist()).after
    assert found.together <= one_turn + 1e-9
    assert fit_replicas(learner, problem, copies) == found
    if copies == 1:
        assert found.layouts == (first,)


@pytest.mark.parametrize("learner", [QdTree(), Range()], ids=["qdtree", "range"])
def test_each_copy_takes_one_kind_of_query(learner: Learner) -> None:
    problem = two_kinds()
    found = fit_replicas(learner, problem, 2)
    assert found.alone > 0.15
    assert found.together < 0.12  # five in a hundred match
