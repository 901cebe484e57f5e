"""Several views of the same blocks: each may rule a block out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hedgerow.core.index.block_index import BlockIndex, Membership, View, concat_indexes
from hedgerow.core.predicates.nodes import Compare, Predicate, col, lit, terms_of
from hedgerow.core.pruning.block_stats import F_BIT, T_BIT, collect
from hedgerow.sql.workload import Workload

x = col("x")
# rows        x = 1, 9 | 2, 8 | 5      in blocks 0 | 1 | 2
BLOCKS = View(collect({x: pa.array([1, 9, 2, 8, 5])}, None, [0, 0, 1, 1, 2], 3))
# cells by value: {1, 2} live in blocks 0 and 1, {5} in 2, {8, 9} in 0 and 1
CELLS = View(
    collect({x: pa.array([1, 9, 2, 8, 5])}, None, [0, 2, 0, 2, 1], 3),
    Membership.build([[0, 1], [2], [0, 1]]),
)


def opened(index: BlockIndex, op: str, value: int) -> list[int]:
    return np.flatnonzero(index.to_open(Compare(x, op, lit(value)))).tolist()


def test_blocks_alone() -> None:
    assert opened(BlockIndex((BLOCKS,)), "<", 3) == [0, 1]
    assert opened(BlockIndex((BLOCKS,)), ">", 100) == []


def test_cells_open_the_blocks_they_live_in() -> None:
    index = BlockIndex((View(BLOCKS.stats), CELLS))
    assert opened(index, ">=", 8) == [0, 1]
    assert opened(index, "=", 5) == [2]


def test_each_view_may_rule_a_block_out() -> None:
    """Without distinct sets the blocks' bounds alone can not rule out 5; the cells can."""
    loose = View(collect({x: pa.array([1, 9, 2, 8, 5])}, None, [0, 0, 1, 1, 2], 3, max_distinct=0))
    assert opened(BlockIndex((loose,)), "=", 5) == [0, 1, 2]
    assert opened(BlockIndex((loose, CELLS)), "=", 5) == [2]


def test_an_empty_membership() -> None:
    index = BlockIndex((BLOCKS, View(CELLS.stats, Membership.build([[], [0, 1, 2], []]))))
    assert opened(index, "=", 5) == [2]
    assert opened(index, "=", 1) == []


def test_joined_indices() -> None:
    """The same three blocks once more, as blocks 3 to 5."""
    index = concat_indexes([BlockIndex((BLOCKS,)), BlockIndex((BLOCKS,))])
    assert opened(index, ">=", 8) == [0, 1, 3, 4]
    assert opened(index, "=", 5) == [2, 5]


def test_statistics_of_the_thesis() -> None:
    """Fig. 4.3: a file's bounds decide about an expression, and its bits about a condition."""

    def asked(condition: str) -> Predicate:
        return Workload.from_sql([f"SELECT * FROM t WHERE {condition}"]).queries[0].predicate("t")

    courier, broken = asked("shipping['courier'] = 'DHL'"), asked("note LIKE '%broken%'")
    month = next(iter(terms_of(asked("month(shipped) > 10"))))
    stats = collect(
        {month: pa.array([3, 7, 9])},
        {courier: np.array([T_BIT, F_BIT, F_BIT], np.uint8), broken: np.full(3, F_BIT, np.uint8)},
    )
    index = BlockIndex((View(stats),))
    opened = {text: bool(index.to_open(asked(text))[0]) for text in ("month(shipped) > 10", "month(shipped) > 8")}
    assert opened == {"month(shipped) > 10": False, "month(shipped) > 8": True}
    assert index.to_open(courier)[0] and not index.to_open(broken)[0]
    assert not index.to_open(asked("month(shipped) > 8 AND note LIKE '%broken%'"))[0]
    assert index.to_open(asked("note LIKE '%lost%'"))[0]  # nothing is known about it
