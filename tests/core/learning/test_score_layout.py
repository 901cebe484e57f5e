"""A what-if small enough to be checked by hand, and what goes into it: samples, cuts, problems."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.core.effort import NORMAL
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.predicates.nodes import TRUE, And, Compare, CompareTerms, In, Like, Not, Or, Predicate, col, lit
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.candidate_cuts import USUAL, Kind, cuts_of
from hedgerow.core.workload.queries import Query, Scan, Workload
from hedgerow.core.workload.score import Score
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Top

x, y, z, wide = col("x"), col("y"), col("z"), col("wide")
LIKE = Like(wide, "%a%")
LOW, ONE = Compare(x, "<", lit(4)), Compare(y, "=", lit(1))
# block 0: x = 0..3 (4 rows), block 1: x = 4..9 (6 rows); x and y are 8 bytes wide, `wide` is 16
TABLE = pa.table(
    {
        "x": pa.array(range(10)),
        "y": pa.array([1, 1, 2, 2, 1, 3, 3, 3, 3, 3]),
        "wide": pa.array([b"0123456789abcdef"] * 10, pa.binary(16)),
    }
)
SAMPLE = Sample.of_table(TABLE)
TREE = TreeLayout((LOW,), ((0, ~0, ~1),))


def asked(*queries: Query) -> Score:
    return score_layout(TREE, SAMPLE, queries, "t")


def query(p: Predicate, reads: tuple[str, ...] | None = None, weight: float = 1.0) -> Query:
    return Query("q", (Scan("t", p, reads),), weight=weight)


@pytest.mark.parametrize(
    ("q", "rows", "blocks", "bytes_", "selectivity"),
    [
        (query(Compare(x, "=", lit(2))), 0.4, 0.5, 0.4, 0.1),
        (query(Compare(x, "=", lit(2)), ("x",)), 0.4, 0.5, 0.4 * 8 / 32, 0.1),
        (query(Compare(x, "=", lit(2)), ("y",)), 0.4, 0.5, 0.4 * 16 / 32, 0.1),  # x is read to be compared
        (query(Compare(y, "=", lit(2))), 0.4, 0.5, 0.4, 0.2),
        (query(ONE), 1.0, 1.0, 1.0, 0.3),
        (query(Compare(x, ">", lit(100))), 0.0, 0.0, 0.0, 0.0),
        (query(TRUE), 1.0, 1.0, 1.0, 1.0),
    ],
    ids=str,
)
def test_by_hand(q: Query, rows: float, blocks: float, bytes_: float, selectivity: float) -> None:
    found = asked(q)
    assert (found.rows_read, found.blocks_read) == pytest.approx((rows, blocks))
    assert found.bytes_read == pytest.approx(bytes_)
    assert found.selectivity == pytest.approx(selectivity)


@pytest.mark.parametrize(
    ("p", "wanted", "rows", "means"),
    [
        (TRUE, Top(x, False, 3), 0.4, "top-k"),
        (TRUE, Top(x, True, 6), 0.6, "top-k"),
        (TRUE, Top(x, True, 7), 1.0, "where"),
        (TRUE, AnyRows(6), 0.6, "limit"),
        (LOW, AnyRows(9), 0.4, "where"),  # no four rows are enough
        (TRUE, Aggregates((("count", None),)), 0.0, "aggregates"),
        (Compare(x, "<", lit(6)), Aggregates((("count", None),)), 0.6, "aggregates"),
        (LOW, Aggregates((("sum", y), ("max", x))), 0.0, "aggregates"),
        (LOW, Aggregates((("sum", x),)), 0.4, "where"),  # the index has sums of y only
        (TRUE, Aggregates((("count", None),), (y,)), 1.0, "where"),  # the values of y differ in both blocks
    ],
    ids=str,
)
def test_queries_that_need_fewer_files_than_their_where(p: Predicate, wanted: Any, rows: float, means: str) -> None:
    scan = Scan("t", p, wanted=wanted)
    (found,) = score_layout(TREE, SAMPLE, [Query("q", (scan,))], "t", [y]).queries
    assert (found.rows_read, found.means) == (pytest.approx(rows), means)
    assert found.selectivity is not None and found.selectivity <= rows  # no layout reads less


@pytest.mark.parametrize(("p", "rows", "share"), [(TRUE, 5, 0.5), (ONE, 1, 1 / 3), (ONE, 7, 1.0), (LIKE, 1, 1.0)])
def test_a_limit_ends_the_reading(p: Predicate, rows: int, share: float) -> None:
    (found,) = score_layout(TREE, SAMPLE, [Query("q", (Scan("t", p, wanted=AnyRows(rows)),))], "t").queries
    assert found.until_limit == pytest.approx(share)


def test_a_sample_stands_for_all_rows() -> None:
    half = Sample(SAMPLE.rows, 20, SAMPLE.schema, SAMPLE.width)  # block 0 stands for 8 rows
    scans = [Scan("t", TRUE, wanted=Top(x, False, k)) for k in (8, 9)]
    found = [score_layout(TREE, half, [Query("q", (scan,))], "t").rows_read for scan in scans]
    assert found == pytest.approx([0.4, 1.0])


def test_weighted_means() -> None:
    found = asked(query(Compare(x, "=", lit(2)), weight=3.0), query(TRUE, weight=1.0))
    assert found.rows_read == pytest.approx((3 * 0.4 + 1) / 4)
    assert json.loads(found.to_json())["queries"][0]["rows_read"] == pytest.approx(0.4)
    assert "rows read" in str(found) and "55.00 %" in str(found)


def test_several_scans_read_what_any_of_them_needs() -> None:
    both = Query("q", (Scan("t", Compare(x, "=", lit(1))), Scan("t", Compare(x, "=", lit(8))), Scan("u", TRUE)))
    assert asked(both).rows_read == 1.0
    assert asked(both).selectivity == pytest.approx(0.2)


def test_what_the_sample_cannot_evaluate_is_read_and_has_no_selectivity() -> None:
    found = asked(query(And((LIKE, LOW))), query(LIKE))
    assert [q.rows_read for q in found.queries] == [0.4, 1.0]
    assert found.queries[1].selectivity is None


def test_nothing_to_score() -> None:
    with pytest.raises(LayoutError, match="no query"):
        asked()


def test_sample() -> None:
    some = Sample.of_table(TABLE, {LIKE: np.array([2] * 5 + [1] * 5, np.uint8)}).part(4, seed=1)
    assert (len(some), some.table_rows, some.fraction) == (4, 10, 0.4)
    values = some.rows.ranks(x)
    drawn = [values.values[place] for place in values.places]
    assert drawn == sorted(drawn) and len(set(drawn)) == 4
    assert some.rows.evaluate(LIKE).tolist() == [2 if v < 5 else 1 for v in drawn]
    assert len(Sample.of_table(TABLE).part(99)) == 10
    assert SAMPLE.width == {"x": 8.0, "y": 8.0, "wide": 16.0}
    with pytest.raises(LayoutError, match="empty"):
        Sample.of_table(TABLE.slice(0, 0))


def test_cuts() -> None:
    queries: list[Predicate] = [And((LOW, Or((ONE, LIKE)))), LOW, Not(Not(LOW))]
    atoms = {"(wide LIKE '%a%')", "x < 4", "y = 1"}
    assert {predicate_text(c) for c in cuts_of(queries, kind="atoms")} == atoms
    assert {predicate_text(c) for c in cuts_of(queries)} == atoms
    assert {predicate_text(c) for c in cuts_of([Or((LOW, Compare(y, ">", lit(7))))])} == {
        "x < 4",
        "y > 7",
        "x < 4 OR y > 7",
    }
    assert {predicate_text(c) for c in cuts_of(queries, kind="atoms+subtrees")} == {
        *atoms,
        "(wide LIKE '%a%') OR y = 1",
        "((wide LIKE '%a%') OR y = 1) AND x < 4",
    }


def test_cuts_where_values_begin_that_have_too_few_rows() -> None:
    queries: tuple[Predicate, ...] = (
        Compare(z, "=", lit(7)),
        Not(In(z, (lit(30), lit(31)))),
        ONE,
        Compare(z, "<", lit(5)),
    )
    sample = Sample.of_table(pa.table({"z": pa.array(range(100)), "y": pa.array([1, 2] * 50)}))
    asked = {predicate_text(c) for c in cuts_of(queries)}

    def found(block_rows: int, kind: Kind = USUAL) -> set[str]:
        return {predicate_text(c) for c in Problem.build(sample, queries, block_rows, cuts=kind).cuts}

    assert found(1) == asked
    assert found(2) == asked | {"z >= 7"}
    assert found(60) == asked | {"z >= 7", "z >= 30", "z >= 31"}
    assert found(60, "atoms") == asked  # as in the papers
    assert found(60, "usual+subtrees") - found(60, "atoms+subtrees") == found(60) - asked


def test_the_cuts_most_asked_for_stay() -> None:
    queries: list[Predicate] = [LOW, ONE, In(x, (lit(7),)), ONE]
    heaviest, two = replace(NORMAL, cuts=1), replace(NORMAL, cuts=2)
    assert [predicate_text(c) for c in cuts_of(queries, amounts=heaviest)] == ["y = 1"]
    assert [predicate_text(c) for c in cuts_of(queries, [9, 1, 1, 1], amounts=two)] == ["x < 4", "y = 1"]


def test_advanced_cuts_are_limited() -> None:
    queries: list[Predicate] = [LIKE, CompareTerms(x, "<", y), CompareTerms(x, "<", y), LOW]
    for limit, left in ((None, 3), (2, 3), (1, 2), (0, 1)):
        cuts = cuts_of(queries, amounts=replace(NORMAL, advanced=limit))
        assert len(cuts) == left and LOW in cuts
        assert (LIKE in cuts) == (left == 3), "the one of more queries stays"


def test_problem() -> None:
    quarter = Sample.of_table(TABLE).part(5)
    problem = Problem.build(quarter, (And((LOW, LIKE)), TRUE), block_rows=4)
    assert problem.cuts == (LOW,), "the sample says nothing about LIKE"
    assert problem.sample_block_rows == 2
    assert (len(problem.cuts), problem.truth.rows) == (1, 5)
    with pytest.raises(LayoutError, match="block_rows=0"):
        Problem.build(SAMPLE, (), block_rows=0)


def test_workload_of_predicates() -> None:
    assert [q.rows_read for q in asked(*Workload.of("t", [LOW, Compare(x, ">", lit(5))])).queries] == [0.4, 0.6]
