"""SOP + Z-order, from a problem to a layout."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import Axis, BlockAxis
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import And, Compare, Like, Opaque, Predicate, col, lit
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.workload.queries import Workload
from hedgerow.learners.curves.zorder import ZOrder
from hedgerow.learners.sop.bottom_up import BottomUp
from hedgerow.learners.sop.sop_zorder import SopZOrder, ordered

ROWS = 4096
NOTES = Like(col("note"), "%broken%")


def logs() -> Sample:
    r = np.random.default_rng(0)
    table = pa.table({"ip": r.permutation(ROWS), "kind": r.integers(0, 6, ROWS), "note": ["x"] * ROWS})
    return Sample.of_table(table, truths={NOTES: np.where(r.random(ROWS) < 0.1, 2, 1).astype(np.uint8)})


def asked(ips: range) -> tuple[Predicate, ...]:
    """Table 4.1: the address is another one each time; the other conditions come again."""
    again = (NOTES, Compare(col("kind"), "=", lit(3)))
    return tuple(Compare(col("ip"), "=", lit(ip)) for ip in ips) + again * 4


def read(layout: Layout, sample: Sample, queries: tuple[Predicate, ...]) -> float:
    return score_layout(layout, sample, Workload.of("t", queries).queries, "t").rows_read


def test_changing_literals_are_for_the_curve_and_all_else_for_groups() -> None:
    sample = logs()
    layout = SopZOrder().fit(Problem.build(sample, asked(range(0, 4000, 300)), 128))
    groups, ip = layout.axes
    assert isinstance(groups, BlockAxis) and isinstance(ip, Axis)
    assert set(groups.features) == {Compare(col("kind"), "=", lit(3)), NOTES}
    assert ip.term == col("ip")
    unseen = tuple(Compare(col("ip"), "=", lit(v)) for v in range(7, 4000, 211))
    assert read(layout, sample, unseen) < 0.25
    assert read(layout, sample, (NOTES,)) < 0.5
    assert (
        read(BottomUp(cost="features").fit(Problem.build(sample, asked(range(0, 4000, 300)), 128)), sample, unseen)
        > 0.5
    )
    assert layout_from_json(layout_to_json(layout)) == layout
    assert layout.assign_sql() is None


def test_terms_of_few_literals_and_named_columns() -> None:
    sample = logs()
    few = Problem.build(sample, asked(range(0, 900, 300)), 128)
    layout = SopZOrder().fit(few)
    assert [type(axis) for axis in layout.axes] == [BlockAxis]
    named = SopZOrder(columns=("ip",)).fit(few)
    assert [axis.features for axis in named.axes][1:] == [(col("ip"),)]
    with pytest.raises(LayoutError, match="no column"):
        SopZOrder(columns=("nothing",)).fit(few)
    with pytest.raises(LayoutError, match="alike must be a share of the pairs of rows"):
        SopZOrder(alike=0.7).fit(few)


def test_of_terms_that_order_rows_alike_one_is_in_the_curve() -> None:
    """As of year and items sold (thesis, 4.2.2): the other's place is free for a term that says something else."""
    r = np.random.default_rng(1)
    shipped = r.integers(0, 2500, ROWS)
    dates = {"shipped": shipped, "received": shipped + r.integers(1, 30, ROWS), "due": -shipped}
    sample = Sample.of_table(pa.table({**dates, "price": r.integers(0, 2500, ROWS)}))
    asked_for = {"shipped": 20, "received": 40, "due": 30, "price": 12}
    queries = tuple(Compare(col(name), "<", lit(50 * i)) for name, n in asked_for.items() for i in range(n))
    problem = Problem.build(sample, queries, 128)

    def axes(learner: SopZOrder) -> list[str]:
        return [term_text(axis.term) for axis in learner.fit(problem).axes if isinstance(axis, Axis)]

    assert axes(SopZOrder(most=2)) == ["received", "price"]
    assert axes(SopZOrder(most=2, alike=0)) == ["received", "due"]


def test_of_conditions_on_the_same_rows_one_is_a_feature() -> None:
    r = np.random.default_rng(2)
    country, weight = r.choice(["FR", "US"], ROWS), r.integers(0, 9, ROWS)
    table = pa.table({"country": country, "currency": np.where(country == "FR", "EUR", "USD"), "weight": weight})
    conditions = [Compare(col("country"), "=", lit("FR")), Compare(col("currency"), "=", lit("EUR"))]
    conditions += [Compare(col("weight"), "=", lit(3))]
    queries = tuple(c for n, c in zip((4, 3, 2), conditions, strict=True) for _ in range(n))
    layout = SopZOrder(cost="sop").fit(Problem.build(Sample.of_table(table), queries, 128))
    assert set(layout.features) == {conditions[0], conditions[2]}


def test_no_queries_one_block() -> None:
    layout = SopZOrder().fit(Problem.build(logs(), (), 128))
    assert (layout.axes, layout.blocks) == ((), 1)
    assert BottomUp().fit(Problem.build(logs(), (), 128)) == GroupLayout((), {})


def test_groups_that_do_not_pay_are_left_out() -> None:
    """Never more rows of the sample than by the terms alone, and sometimes fewer."""
    better = 0
    for seed in range(8):
        r = np.random.default_rng(seed)
        often = seed % 2 == 1  # conditions that come again, or hardly
        table = pa.table({"a": r.integers(0, 1000, 3000), "b": r.integers(0, 1000, 3000), "c": r.integers(0, 40, 3000)})
        queries = []
        for _ in range(30):
            parts = (
                [Compare(col("c"), "=", lit(int(r.integers(2 if often else 40))))] if often or r.random() < 0.3 else []
            )
            for name in "ab":
                low = int(r.integers(0, 900))
                parts += [Compare(col(name), ">=", lit(low)), Compare(col(name), "<", lit(low + 100))]
            queries.append(And(tuple(parts)))
        p = Problem.build(Sample.of_table(table), tuple(queries), 50)
        found, alone = SopZOrder(columns=("a", "b")).fit(p), ZOrder(("a", "b")).fit(p)
        assert p.reads(found) <= p.reads(alone)
        better += p.reads(found) < p.reads(alone)
        read = score_layout(found, p.sample, Workload.of("t", queries).queries, "t").rows_read
        assert p.reads(found) >= 0.999 * read  # the index knows blocks' values, too
    assert 0 < better < 8


def test_groups_are_numbered_in_their_order() -> None:
    """The line 100 - 000 - 001 - 011, whatever the numbers were."""
    features = tuple(Opaque(f"f{i}", ()) for i in range(3))
    found = ordered(GroupLayout(features, {"000": 0, "011": 1, "100": 2, "001": 3}))
    assert [sorted(found.block_of, key=lambda v: found.block_of[v])] in (
        [["100", "000", "001", "011"]],
        [["011", "001", "000", "100"]],
    )


def test_reasons_say_what_was_chosen_and_why_the_rest_was_not() -> None:
    r = np.random.default_rng(0)
    ip = r.permutation(ROWS)
    table = pa.table({"ip": ip, "later": ip * 2 + 1, "kind": r.integers(0, 6, ROWS), "note": ["x"] * ROWS})
    sample = Sample.of_table(table, truths={NOTES: np.where(r.random(ROWS) < 0.1, 2, 1).astype(np.uint8)})
    queries = asked(range(0, 4000, 300)) + tuple(Compare(col("later"), ">", lit(v)) for v in range(0, 4000, 400))
    problem = Problem.build(sample, queries, 128)
    learner = SopZOrder()
    told = learner.reasons(problem, learner.fit(problem))
    assert told[:3] == [
        "ip, in 44% of the queries: in the Z-order, for the queries have 14 values for it",
        "later, in 31% of the queries: not in the Z-order, for it orders rows as ip does",
        "kind, in 12% of the queries: not in the Z-order, for the queries have fewer than 10 values for it: 1",
    ]
    assert {
        "kind = 3, in 12% of the queries: a feature of the row groups",
        "(note LIKE '%broken%'), in 12% of the queries: a feature of the row groups",
    } <= set(told[3:])
    named = SopZOrder(columns=("later",), cost="sop")
    assert named.reasons(problem, named.fit(problem))[:2] == [
        "ip, in 44% of the queries: not named for the Z-order",
        "later, in 31% of the queries: in the Z-order, as named",
    ]
