"""The condition that describes the values of some blocks is TRUE on each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.values_in import MAX_RANGES, values_in
from hedgerow.core.predicates.nodes import FALSE, TRUE, In, Or, col
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import UNBOUNDED, Bound, Stats, TermStats
from hedgerow.core.pruning.row_batch import Rows

MINE, THEIRS = col("l_orderkey"), col("o_orderkey")


def index(stats: TermStats) -> BlockIndex:
    return BlockIndex(Stats(np.full(len(stats.low), 9), {"o_orderkey": stats}, {}))


def described(blocks: Sequence[Sequence[int]], sets: bool, chosen: Sequence[bool]) -> object:
    bounds = [(Bound(min(b)), Bound(max(b))) if b else None for b in blocks]
    listed = [sorted(set(b)) for b in blocks] if sets else None
    stats = TermStats.build(Type("int"), bounds, [0] * len(blocks), sets=listed)
    return values_in([(index(stats), np.array(chosen, bool))], THEIRS, MINE)


@given(
    st.lists(st.tuples(st.lists(st.integers(-50, 50), max_size=4), st.booleans()), min_size=1, max_size=60),
    st.booleans(),
)
def test_every_value_satisfies_it(blocks: list[tuple[list[int], bool]], sets: bool) -> None:
    p = described([b for b, _ in blocks], sets, [c for _, c in blocks])
    values = sorted({v for b, is_chosen in blocks if is_chosen for v in b})
    rows = Rows({MINE: pa.array(values or [0], pa.int64())}, {})
    assert not values or (rows.evaluate(p) == 2).all(), predicate_text(p)  # type: ignore[arg-type]
    if sets:
        assert p == (In(MINE, p.literals) if values else FALSE)  # type: ignore[attr-defined]
        assert not values or [literal.value for literal in p.literals] == values  # type: ignore[attr-defined]


def test_ranges() -> None:
    p = described([[1, 5], [4, 9], [20, 20], [70, 80]], False, [True, True, True, False])
    assert predicate_text(p) == "(l_orderkey >= 1 AND l_orderkey <= 9) OR (l_orderkey >= 20 AND l_orderkey <= 20)"
    many = described([[10 * i, 10 * i + 1] for i in range(200)], False, [True] * 200)
    assert isinstance(many, Or) and len(many.children) == MAX_RANGES


def test_what_is_not_known() -> None:
    chosen = np.array([True, False])
    half = TermStats.build(Type("int"), [(Bound(3), UNBOUNDED), (Bound(1), Bound(2))], [0, 0])
    assert predicate_text(values_in([(index(half), chosen)], THEIRS, MINE)) == "l_orderkey >= 3"
    beside = TermStats.build(Type("int"), [(Bound(3, 1), Bound(7, -1)), (Bound(1), Bound(2))], [0, 0])
    assert predicate_text(values_in([(index(beside), chosen)], THEIRS, MINE)) == "l_orderkey > 3 AND l_orderkey < 7"
    unknown = TermStats.unknown(Type("int"), 2)
    assert values_in([(index(unknown), chosen)], THEIRS, MINE) == TRUE
    assert values_in([(index(half), chosen)], col("elsewhere"), MINE) == TRUE
    floats = TermStats.build(Type("float"), [(Bound(1.0), Bound(2.0)), None], [0, 0])
    assert values_in([(index(floats), chosen)], THEIRS, MINE) == TRUE  # NaN is in no range
    assert values_in([(index(half), ~chosen & False)], THEIRS, MINE) == FALSE


@pytest.mark.parametrize("known", [True, False])
def test_of_several_parts(known: bool) -> None:
    first = TermStats.build(Type("int"), [(Bound(1), Bound(2))], [0])
    more = TermStats.build(Type("int"), [(Bound(8), Bound(9))], [0]) if known else TermStats.unknown(Type("int"), 1)
    p = values_in([(index(first), np.array([True])), (index(more), np.array([True]))], THEIRS, MINE)
    assert (p == TRUE) is not known
