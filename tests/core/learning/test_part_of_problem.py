"""The problem of a part of a table, such as a region that a task learns."""

from __future__ import annotations

import pickle

import pyarrow as pa

from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.predicates.nodes import Compare, col, lit

LOW, HIGH = Compare(col("x"), "<", lit(100)), Compare(col("x"), ">", lit(800))


def _sample(values: range) -> Sample:
    return Sample.of_table(pa.table({"x": list(values)}))


def test_it_has_the_queries_that_may_match_its_rows() -> None:
    whole = Problem.build(_sample(range(1_000)), (LOW, HIGH, LOW), 50, (1.0, 3.0, 2.0))
    part = whole.of_part(_sample(range(90, 300)))
    assert (part.predicates, part.weights, part.block_rows) == ((LOW, LOW), (1.0, 2.0), 50)
    assert part.cuts and (len(part.truth.words), part.truth.rows) == (len(part.cuts), 210)


def test_it_is_sent_without_rows() -> None:
    whole = Problem.build(_sample(range(100_000)), (LOW, HIGH), 50)
    sent = pickle.loads(pickle.dumps(whole.without_rows()))
    assert len(pickle.dumps(sent)) < 10_000
    assert sent.of_part(_sample(range(200))).predicates == (LOW,)
