"""Bottom-up row grouping, from a problem to a layout; worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hedgerow.core.learning.block_counter import RowCounter
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, col, lit
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.learners.sop.bottom_up import BottomUp
from tests.support.feature_problem import problem

GROUPS = {"000": 0, "001": 1, "010": 1, "011": 1, "100": 2, "101": 3, "110": 3, "111": 3}


def test_a_case_by_hand() -> None:
    """Features x < 9, y = 1, z = 1 of the weights 4, 3, 1 (see test_frequent), blocks of 4 rows:

        000 x 4   001 x 1   010 x 5   011 x 1   100 x 4   101 x 1   110 x 3   111 x 1

    001 + 011, 101 + 111 and 110 + 111 cost 3, so the first comes first: 011 x 2. Then 101 + 111: 111 x 2, which costs 3
    with 110, and 8 with 011: 111 x 5 is full. 011 x 2 is alone; of the full ones 010 costs 5, 111 8, 000 16, 100 24.
    """
    layout = BottomUp(cost="features").fit(problem())
    assert [predicate_text(p) for p in layout.predicates] == ["x < 9", "y = 1", "z = 1"]
    assert dict(layout.block_of) == GROUPS


def test_weights_by_name() -> None:
    """With the thesis' weights, 1, 3, 1, the x < 9 that only one query names is cheap to give up: 001 + 101 and
    011 + 111 cost 1; 110 joins the second for 3; 101 x 2 is alone and costs 4 with 100, 6 with 111, 8 with 000."""
    layout = BottomUp(cost="sop").fit(problem())
    assert dict(layout.block_of) == {"000": 0, "001": 1, "010": 2, "011": 3, "100": 1, "101": 1, "110": 3, "111": 3}


def test_a_new_vector_joins_the_block_that_grows_least() -> None:
    queries = tuple(Compare(col(name), "=", lit(1)) for name in "abc")
    table = pa.table({"a": [1] * 4 + [0] * 8, "b": [0] * 4 + [1] * 4 + [0] * 4, "c": [0] * 4 + [1] * 4 + [0] * 4})
    layout = BottomUp(cost="features").fit(Problem.build(Sample.of_table(table), queries, 4))
    known = layout.assign(Rows.of_table(table)).tolist()
    assert len(set(known)) == 3
    new = layout.assign(Rows.of_table(pa.table({"a": [0, 1], "b": [1, 1], "c": [0, 1]}))).tolist()
    assert new == [known[4], known[4]]  # nothing new to it; one new feature, where the first block would have two


def test_all_rows_are_counted_where_that_can_be() -> None:
    """The sample says 4 of each; all rows say that one group is too small."""
    table = pa.table({"a": [1] * 4 + [0] * 4})
    build = Problem.build(Sample.of_table(table), (Compare(col("a"), "=", lit(1)),), 4)
    assert BottomUp(cost="features").fit(build).blocks == 2

    every_row = Rows.of_table(pa.table({"a": [1] * 3 + [0] * 9}))
    exact = replace(build, counter=RowCounter(every_row))
    assert BottomUp(cost="features").fit(exact).blocks == 1
