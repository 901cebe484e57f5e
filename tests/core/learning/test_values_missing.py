"""Columns that most rows have no value of, such as those of one kind of event among many."""

from __future__ import annotations

import pyarrow as pa

from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, IsNull, col, lit
from hedgerow.learners.qdtree.qdtree import QdTree

ROWS, COUPONS = 20_000, 40
COUPON = [f"c{i // 20 % COUPONS:02d}" if i % 20 == 0 else None for i in range(ROWS)]
SAMPLE = Sample.of_table(pa.table({"coupon": COUPON, "filled": [value or "none" for value in COUPON]}))
ASKED = tuple(Compare(col("coupon"), "=", lit(f"c{n:02d}")) for n in range(0, COUPONS, 4))


def test_rows_without_a_value_are_in_blocks_of_their_own() -> None:
    problem = Problem.build(SAMPLE, ASKED, 500)
    assert IsNull(col("coupon")) in problem.cuts
    layout = QdTree().fit(problem)
    unseen = tuple(Compare(col("coupon"), "=", lit(f"c{n:02d}")) for n in range(1, COUPONS, 4))
    assert Problem.build(SAMPLE, unseen, 500).reads(layout) <= 0.06


def test_only_where_most_rows_have_none_and_conditions_are_rare() -> None:
    filled = tuple(Compare(col("filled"), "=", p.literal) for p in ASKED)
    assert not any(isinstance(cut, IsNull) for cut in Problem.build(SAMPLE, filled, 500).cuts)
    assert not any(isinstance(cut, IsNull) for cut in Problem.build(SAMPLE, ASKED, 10).cuts)
    assert Problem.build(SAMPLE, ASKED, 500, cuts="atoms").cuts == ASKED
