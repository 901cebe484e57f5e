"""What is noted of entries, and what survives when they are joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.core.predicates.nodes import Compare, Like, Not, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import (
    ANY,
    F_BIT,
    N_BIT,
    T_BIT,
    UNBOUNDED,
    UNKNOWN_NULLS,
    Bound,
    Stats,
    TermStats,
    collect,
    drop_unused_values,
)
from hedgerow.core.pruning.combine_stats import concat, regroup
from hedgerow.core.pruning.evaluator import may_match, possible_outcomes

x = col("x")
RED = Like(col("colour"), "%red%")


def of(values: list[Any], entry: list[int], entries: int = 2, **more: Any) -> Stats:
    return collect({x: pa.array(values)}, None, entry, entries, **more)


def bounds(stats: Stats, name: str = "x") -> list[tuple[Any, Any] | None]:
    """The exact bounds of each entry, None where it holds no value."""
    t = stats.terms[name]
    return [
        (t.values[low // 2], t.values[high // 2]) if low <= high else None
        for low, high in zip(t.low.tolist(), t.high.tolist(), strict=True)
    ]


def test_collect() -> None:
    stats = of([3, 1, None, 8, 8], [0, 0, 1, 1, 1], entries=3)
    assert stats.rows.tolist() == [2, 3, 0]
    assert bounds(stats) == [(1, 3), (8, 8), None]
    assert stats.terms["x"].nulls.tolist() == [0, 1, 0]
    assert stats.terms["x"].values == [1, 3, 8]


def test_nan_is_noted_apart_from_the_bounds() -> None:
    stats = of([1.0, float("nan"), float("nan")], [0, 0, 1])
    assert bounds(stats) == [(1.0, 1.0), None]
    assert stats.terms["x"].nan.tolist() == [True, True]
    assert may_match(Compare(x, ">", lit(100.0)), stats).tolist() == [True, True]
    assert may_match(Compare(x, "<", lit(100.0)), stats).tolist() == [True, False]


def test_columns_whose_order_we_do_not_know_are_left_out() -> None:
    assert collect({x: pa.array([[1], [2]])}, None, [0, 0], 1).terms == {}


def test_distinct_sets_are_kept_once_and_only_while_few() -> None:
    stats = of([1, 5, 1, 5, 2, 3], [0, 0, 1, 1, 2, 2], entries=3)
    sets = stats.terms["x"].sets
    assert sets is not None
    assert len(sets.offsets) - 1 == 2
    assert may_match(Compare(x, "=", lit(3)), stats).tolist() == [False, False, True]
    few = of([1, 5, 9, 5], [0, 0, 0, 1], max_distinct=2)
    assert may_match(Compare(x, "=", lit(3)), few).tolist() == [True, False]


def test_a_feature_notes_the_outcomes_of_each_entry() -> None:
    stats = collect({}, {RED: np.array([T_BIT, N_BIT, F_BIT], np.uint8)}, [0, 0, 1], 3)
    assert possible_outcomes(RED, stats).tolist() == [T_BIT | N_BIT, F_BIT, 0]
    assert may_match(Not(RED), stats).tolist() == [False, True, False]


def test_a_weaker_feature_helps() -> None:
    """Nobody noted x < 5, and there are no bounds: but where x < 10 was never TRUE, x < 5 is not."""
    weaker = Compare(x, "<", lit(10))
    stats = collect({}, {weaker: np.array([F_BIT, T_BIT], np.uint8)}, [0, 1], 2)
    assert may_match(Compare(x, "<", lit(5)), stats).tolist() == [False, True]
    assert may_match(Compare(x, ">=", lit(20)), stats).tolist() == [True, False]


def test_an_unknown_feature_or_term_means_any() -> None:
    stats = of([1], [0], entries=1)
    p: Predicate
    for p in (RED, Compare(col("y"), "<", lit(3)), Compare(x, "<", lit("text"))):
        assert possible_outcomes(p, stats).tolist() == [ANY]


def test_bounds_in_gaps() -> None:
    """A region promises x > 5 (open below) and x < 9 (open above): 5 and 9 themselves can not be in it."""
    inside = TermStats.build(Type("bigint"), [(Bound(5, 1), Bound(9, -1)), (UNBOUNDED, Bound(5))], [0, 0])
    for known in (inside, drop_unused_values(inside)):
        stats = Stats(np.array([1, 1]), {"x": known}, {})
        assert may_match(Compare(x, "=", lit(5)), stats).tolist() == [False, True]
        assert may_match(Compare(x, "=", lit(9)), stats).tolist() == [False, False]
        assert may_match(Compare(x, "=", lit(7)), stats).tolist() == [True, False]
        assert may_match(Compare(x, "<", lit(-1000)), stats).tolist() == [False, True]


def test_the_ends_of_an_open_interval_are_remembered() -> None:
    """No bound is at 5 or 9 itself, and yet forgetting them would widen the gap between them."""
    between = drop_unused_values(TermStats.build(Type("bigint"), [(Bound(5, 1), Bound(9, -1))], [0]))
    assert between.values == [5, 9]


def test_unknown_nulls_may_be_nulls() -> None:
    t = TermStats.build(Type("bigint"), [(Bound(1), Bound(2))] * 2, [UNKNOWN_NULLS, 0])
    stats = Stats(np.array([5, 5]), {"x": t}, {})
    assert possible_outcomes(Compare(x, "<", lit(9)), stats).tolist() == [T_BIT | N_BIT, T_BIT]


def test_regroup_is_as_good_as_collecting_anew() -> None:
    """Joining entries says of bounds, NULLs and sets what their rows together would have said."""
    values, entry, to = [5, None, 1, 2, 9, None], [0, 0, 1, 2, 2, 3], [1, 0, 1, 0]
    joined = regroup(of(values, entry, entries=4), to, 3)
    anew = of(values, [to[e] for e in entry], entries=3)
    for v in range(11):
        for p in (Compare(x, "=", lit(v)), Compare(x, "<", lit(v))):
            assert possible_outcomes(p, joined).tolist() == possible_outcomes(p, anew).tolist()
    assert joined.rows.tolist() == anew.rows.tolist()
    assert joined.terms["x"].nulls.tolist() == anew.terms["x"].nulls.tolist()


def test_concat_keeps_what_only_one_part_knows() -> None:
    y = col("y")
    first = collect({x: pa.array([1, 2]), y: pa.array(["a", "b"])}, {RED: np.array([F_BIT, F_BIT], np.uint8)})
    second = collect({x: pa.array([7])})
    both = concat([first, second])
    assert bounds(both) == [(1, 2), (7, 7)]
    assert possible_outcomes(Compare(y, "=", lit("z")), both).tolist() == [F_BIT, ANY]
    assert possible_outcomes(RED, both).tolist() == [F_BIT, ANY]


def test_a_column_that_changed_its_kind_is_unknown_in_all_parts() -> None:
    both = concat([of([1], [0], entries=1), of(["1"], [0], entries=1)])
    assert both.terms["x"].is_unknown.all()


def test_values_that_no_bound_mentions_are_forgotten() -> None:
    stats = of(list(range(1000)), [0] * 1000, entries=1)
    assert stats.terms[term_text(x)].values == [0, 999]
    assert may_match(normalise(Compare(x, "=", lit(500))), stats).tolist() == [True]
