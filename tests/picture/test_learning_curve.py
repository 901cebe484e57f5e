"""The learning curve has what a tree of so many levels would let the queries read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import Compare, Opaque, Predicate, col, lit
from hedgerow.core.workload.queries import Workload
from hedgerow.picture.learning_curve import depth_of, first_levels, learning_curve

ROWS = 1024


def _halves(levels: int) -> TreeLayout:
    """A tree that cuts 0 <= x < ROWS into halves; node n has the children 2n + 1 and 2n + 2."""
    cuts: list[Predicate] = []
    nodes = []
    inner = 2**levels - 1
    for node in range(inner):
        level = (node + 1).bit_length() - 1
        width = ROWS >> level
        cuts.append(Compare(col("x"), "<", lit(width // 2 + width * (node + 1 - (1 << level)))))
        left, right = (kid if kid < inner else ~(kid - inner) for kid in (2 * node + 1, 2 * node + 2))
        nodes.append((node, left, right))
    return TreeLayout(tuple(cuts), tuple(nodes))


@pytest.fixture(scope="module")
def sample() -> Sample:
    return Sample.of_table(pa.table({"x": np.random.default_rng(3).permutation(ROWS).astype(np.int64)}))


def test_a_query_of_one_value_reads_one_block_of_each_level(sample: Sample) -> None:
    tree = _halves(5)
    workload = Workload.of("t", [Compare(col("x"), "=", lit(n)) for n in (1, 77, 500, 1000)])
    points = learning_curve(tree, sample, workload.queries, "t")
    assert [(p.levels, p.blocks) for p in points] == [(n, 2**n) for n in range(6)]
    assert [p.read for p in points] == [pytest.approx(0.5**n) for n in range(6)]
    assert [p.unseen for p in points] == [pytest.approx(0.5**n) for n in range(6)]
    assert points[-1].read == pytest.approx(score_layout(tree, sample, workload.queries, "t").rows_read)


def test_of_deep_trees_some_levels_are_shown(sample: Sample) -> None:
    points = learning_curve(_halves(9), sample, Workload.of("t", [Compare(col("x"), "<", lit(9))]).queries, "t")
    assert len(points) <= 8 and [points[0].levels, points[-1].levels] == [0, 9]


def test_the_index_skips_by_the_conditions_that_it_describes() -> None:
    even = Sample.of_table(pa.table({"x": np.arange(0, 2 * ROWS, 2)}))
    odd = [Compare(col("x"), "=", lit(n)) for n in (1, 77, 501, 901)]
    queries, tree = Workload.of("t", odd).queries, _halves(2)
    assert [p.read for p in learning_curve(tree, even, queries, "t", odd)] == [0, 0, 0]
    assert [p.read for p in learning_curve(tree, even, queries, "t", odd[:3])] == [0.25, 0.1875, 0.15625]
    assert learning_curve(tree, even.noting(odd), queries, "t")[0].read == 1


def test_what_is_left_of_a_tree() -> None:
    shared = TreeLayout(_halves(2).cuts, ((0, 1, 2), (1, ~0, ~1), (2, ~1, ~0)))
    assert (depth_of(shared), first_levels(shared, 2).blocks) == (2, 2)  # blocks that cells share stay shared
    assert first_levels(shared, 1) == TreeLayout(shared.cuts, ((0, ~0, ~1),))
    assert first_levels(shared, 0).nodes == () and depth_of(TreeLayout((), ())) == 0


def test_a_sample_that_lacks_the_cuts_has_no_curve(sample: Sample) -> None:
    tree = TreeLayout((Opaque("hash(x) % 2 = 0", (col("x"),)),), ((0, ~0, ~1),))
    assert learning_curve(tree, sample, Workload.of("t", [Compare(col("x"), "<", lit(9))]).queries, "t") == ()
