"""Trees of cuts: where rows go."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.layouts.tree import Node, TreeLayout
from hedgerow.core.predicates.nodes import Compare, In, Like, Predicate, Term, col, lit
from hedgerow.core.pruning.row_batch import Rows

x, y = col("x"), col("y")
LIKE = Like(col("note"), "%red%")
#            x < 10
#           /      \
#   y IN (1, 2)    block 2
#     /     \
#  block 0  note LIKE '%red%'
#              /     \
#          block 1  block 3
TREE = TreeLayout((Compare(x, "<", lit(10)), In(y, (lit(1), lit(2))), LIKE), ((0, 1, ~2), (1, ~0, 2), (2, ~1, ~3)))


def test_null_goes_right() -> None:
    columns: dict[Term, Any] = {x: pa.array([5, 5, 5, None, 50]), y: pa.array([1, None, 7, 1, 1])}
    rows = Rows(columns, {LIKE: np.array([2, 4, 2, 2, 2], np.uint8)})
    assert TREE.assign(rows).tolist() == [0, 3, 1, 2, 2]


def test_a_block_with_several_leaves() -> None:
    """Leaves x < 0 and 0 <= x < 100 in block 0; NULL and the rest in block 1."""
    tree = TreeLayout((Compare(x, "<", lit(0)), Compare(x, "<", lit(100))), ((0, ~0, 1), (1, ~0, ~1)))
    assert tree.blocks == 2
    assert tree.assign(Rows({x: pa.array([-5, 50, 100, None])})).tolist() == [0, 0, 1, 1]


def test_nan_equals_nan_in_a_cut() -> None:
    tree = TreeLayout((In(x, (lit(1.0), lit(float("nan")))),), ((0, ~0, ~1),))
    assert tree.assign(Rows({x: pa.array([float("nan"), 2.0])})).tolist() == [0, 1]


def test_assign_sql() -> None:
    assert TREE.assign_sql() == (
        "CASE WHEN x < 10 THEN CASE WHEN y IN (1, 2) THEN 0 WHEN (note LIKE '%red%') THEN 1 ELSE 3 END ELSE 2 END"
    )


def test_no_nodes_is_one_block() -> None:
    tree = TreeLayout((), ())
    assert (tree.blocks, tree.assign_sql()) == (1, "0")
    assert tree.assign(Rows({x: pa.array([1, 2])})).tolist() == [0, 0]


def test_what_only_spark_can_evaluate_is_said_to_be_missing() -> None:
    with pytest.raises(LayoutError, match="only Spark can evaluate"):
        TREE.assign(Rows({x: pa.array([1]), y: pa.array([5])}))


def halves(low: int, high: int, nodes: list[Node], cuts: dict[int, Predicate]) -> int:
    """A balanced tree over leaves low..high-1; the number of its root."""
    if high - low == 1:
        return ~low
    middle, here = (low + high) // 2, len(nodes)
    cuts[here] = Compare(x, "<", lit(middle))
    nodes.append((here, 0, 0))
    nodes[here] = (here, halves(low, middle, nodes, cuts), halves(middle, high, nodes, cuts))
    return here


@pytest.mark.long
def test_ten_thousand_leaves() -> None:
    nodes: list[Node] = []
    cuts: dict[int, Predicate] = {}
    halves(0, 10_000, nodes, cuts)
    tree = TreeLayout(tuple(cuts[i] for i in range(len(cuts))), tuple(nodes))
    assert tree.blocks == 10_000
    assert tree.assign(Rows({x: pa.array([0, 9_999, 1234, None, -5])})).tolist() == [0, 9_999, 1234, 9_999, 0]
    assert tree.assign_sql().count("WHEN") == 9_999
    assert layout_from_json(layout_to_json(tree)) == tree


def test_a_tree_that_is_one_long_chain() -> None:
    """Nothing may need a stack as deep as the tree."""
    n = 1500
    cuts = tuple(Compare(x, "<", lit(i)) for i in range(n))
    tree = TreeLayout(cuts, tuple((i, ~i, i + 1 if i + 1 < n else ~n) for i in range(n)))
    assert tree.assign(Rows({x: pa.array([-1, 700, None])})).tolist() == [0, 701, n]
    assert tree.assign_sql().endswith(f"WHEN x < {n - 1} THEN {n - 1} ELSE {n} END")
    assert layout_from_json(layout_to_json(tree)) == tree


def test_joined_leaves_keep_their_rows_and_a_cut_between_equals_goes() -> None:
    r = np.random.default_rng(0)
    values: dict[Term, Any] = {x: pa.array([*r.integers(0, 40, 300).tolist(), None])}
    for _ in range(20):
        cuts: dict[int, Predicate] = {}
        nodes: list[Node] = []
        halves(0, 32, nodes, cuts)
        tree = TreeLayout(tuple(cuts[i] for i in range(len(cuts))), tuple(nodes))
        block_of = r.integers(0, r.integers(1, 5), tree.blocks)
        block_of = np.unique(block_of, return_inverse=True)[1]
        joined = tree.relabelled(block_of.tolist())
        assert joined.assign(Rows(values)).tolist() == block_of[tree.assign(Rows(values))].tolist()
        assert all(not (a < 0 and a == b) for _, a, b in joined.nodes)
        assert tree.relabelled([1] * tree.blocks).assign(Rows(values)).tolist() == [1] * 301
        assert {c for c, _, _ in joined.nodes} == set(range(len(joined.cuts)))


@pytest.mark.parametrize("seed", range(20))
def test_trees_below_a_tree(seed: int) -> None:
    """Each row goes to the leaf that the upper tree gives it, and then down the tree below that leaf."""
    r = Random(seed)
    top = _a_tree(r, r.randrange(4))
    below = [_a_tree(r, r.randrange(4)) for _ in range(top.blocks)]
    rows = Rows({x: pa.array([r.choice([None, r.randrange(50)]) for _ in range(200)])})
    first = np.cumsum([0, *(tree.blocks for tree in below)])
    regions, inside = top.assign(rows), [tree.assign(rows) for tree in below]
    whole = top.with_trees_below(below)
    assert whole.assign(rows).tolist() == [first[b] + inside[b][i] for i, b in enumerate(regions)]
    assert whole.blocks == first[-1] and len(set(whole.cuts)) == len(whole.cuts)
    assert layout_from_json(layout_to_json(whole)) == whole


def _a_tree(r: Random, nodes: int) -> TreeLayout:
    """A random tree with a block for each leaf."""
    made: list[list[int]] = []
    leaves: list[tuple[int, int] | None] = [None]  # the places of the leaves in their parents
    for node in range(nodes):
        place = leaves.pop(r.randrange(len(leaves)))
        if place:
            made[place[0]][place[1]] = node
        made.append([node, 0, 0])
        leaves += [(node, 1), (node, 2)]
    for block, place in enumerate(p for p in leaves if p):
        made[place[0]][place[1]] = ~block
    cuts = tuple(Compare(x, "<", lit(r.randrange(50))) for _ in range(nodes))
    distinct = tuple(dict.fromkeys(cuts))
    return TreeLayout(distinct, tuple((distinct.index(cuts[cut]), left, right) for cut, left, right in made))
