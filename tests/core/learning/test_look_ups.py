"""Look-ups that filters will serve hardly count for a layout; the cuts go to the other queries."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.learning.held_out import problem_of
from hedgerow.core.learning.look_ups import without_served
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import virtual_index
from hedgerow.core.predicates.nodes import And, Compare, In, Or, Predicate, col, lit
from hedgerow.learners.qdtree.qdtree import QdTree

ROWS, BLOCK_ROWS = 6_000, 300


def event(i: int) -> str:
    return hashlib.md5(str(i).encode()).hexdigest()


def events(rows: int = ROWS) -> Sample:
    r = np.random.default_rng(3)
    columns = {
        "event": [event(i) for i in range(rows)],
        "user": r.integers(0, rows // 20, rows),
        "x": r.integers(0, 1000, rows),
        "y": r.integers(0, 1000, rows),
        "f": np.arange(rows) / 4,
    }
    return replace(Sample.of_table(pa.table(columns)), width={"event": 100.0, "x": 40.0})


WIDE, IS_EVENT = Compare(col("x"), "<", lit(500)), Compare(col("event"), "=", lit(event(7)))
SERVED = (IS_EVENT, And((IS_EVENT, WIDE)), In(col("event"), (lit(event(1)), lit(event(2)))))
COUNTED = (
    *(WIDE, Or((IS_EVENT, WIDE)), Compare(col("event"), ">", lit("a")), Compare(col("user"), "=", lit(3))),
    *(Compare(col("f"), "=", lit(2.5)), Compare(col("event"), "<>", lit("a")), Compare(col("none"), "=", lit("a"))),
)


@pytest.mark.parametrize("p", SERVED)
def test_a_look_up_of_an_id_hardly_counts(p: Predicate) -> None:
    (weight,) = without_served([p], [2.0], events(), BLOCK_ROWS, 0.01)
    assert 0 < weight < 0.3


@pytest.mark.parametrize("p", COUNTED)
def test_other_queries_count_as_ever(p: Predicate) -> None:
    weights = without_served([p, IS_EVENT], [2.0, 1.0], events(), BLOCK_ROWS, 0.01)
    assert weights[0] == 2.0 and weights[1] < 0.3


@pytest.mark.parametrize(
    ("share", "sample"),
    [(0.0, events()), (0.002, events()), (0.01, events(1000)), (0.01, replace(events(), width={}))],
    ids=["none wanted", "too few bytes", "a small table", "unknown bytes"],
)
def test_without_a_filter_look_ups_count(share: float, sample: Sample) -> None:
    assert without_served(SERVED, [1.0] * 3, sample, BLOCK_ROWS, share) == [1.0] * 3


def test_the_cuts_go_to_the_other_queries() -> None:
    sample, r = events(), Random(5)

    def ranges(n: int) -> list[Predicate]:
        starts = [(name, r.randrange(900)) for name in ("x", "y") for _ in range(n)]
        return [And((Compare(col(c), ">=", lit(a)), Compare(col(c), "<", lit(a + 60)))) for c, a in starts]

    queries = [*ranges(20), *(Compare(col("event"), "=", lit(event(r.randrange(ROWS)))) for _ in range(40))]
    weights = [1.0] * len(queries)
    unseen = ranges(40)
    reads = []
    for some in (weights, without_served(queries, weights, sample, BLOCK_ROWS, 0.01)):
        problem = problem_of(sample, queries, some, BLOCK_ROWS)
        index = virtual_index(QdTree().fit(problem), sample)
        reads.append(np.mean([index.blocks.rows[index.to_open(p)].sum() for p in unseen]) / ROWS)
    assert reads[1] < 0.95 * reads[0]
