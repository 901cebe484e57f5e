"""The kinds of queries say what a query asks, and whether a layout helps it."""

from __future__ import annotations

import pytest

from hedgerow.core.errors import LayoutError
from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.query_kinds import QueryKind, Scores, in_groups, kinds_of, why_refused
from hedgerow.sql.workload import Workload

ASKED = [
    "SELECT * FROM t WHERE x = 5", "SELECT * FROM t WHERE x = 70000", "SELECT y FROM t ORDER BY y DESC LIMIT 100",
    "SELECT y FROM t ORDER BY y DESC LIMIT 50", "SELECT y FROM t WHERE x = 5 ORDER BY y LIMIT 10",
    "SELECT count(*) FROM t", "SELECT min(y), max(y) FROM t WHERE x >= 3", "SELECT count(*) FROM t GROUP BY x",
    "SELECT y FROM t JOIN u ON t.x = u.x WHERE u.plan = 'gold'",
    "SELECT y FROM t JOIN u ON t.x = u.x WHERE u.plan = 'free'",
]  # fmt: skip
TEXTS = {
    "x = 5": 2,
    "ORDER BY y DESC LIMIT 100": 2,
    "x = 5 ORDER BY y LIMIT 10": 1,
    "count(*)": 1,
    "min(y), max(y) WHERE x >= 3": 1,
    "count(*) GROUP BY x": 1,
    "all rows (WHERE u.plan = 'gold')": 2,
}


def scored(*shares: float, files: int = 10) -> Score:
    return Score.mean([QueryScore(str(i), s, s, s, None) for i, s in enumerate(shares)], [1.0] * len(shares), files)


def kind(now: float, then: float, usual: tuple[float, float] | None = None, measured: float = 3.0) -> QueryKind:
    return QueryKind("x = 1", 1, now, then, 1.0, 1.0, 9.0, measured, usual=Estimate(*usual) if usual else None)


def test_texts_say_what_a_query_asks() -> None:
    workload = Workload.from_sql(ASKED, {"t": {"x": "int", "y": "int"}, "u": {"x": "int", "plan": "string"}})
    whole = scored(*[1.0] * len(ASKED))
    assert {k.text: k.queries for k in kinds_of(workload.queries, "t", Scores(whole, whole))} == TEXTS


def test_figures_of_a_kind() -> None:
    queries = Workload.from_sql(["SELECT * FROM t WHERE x = 1", "SELECT * FROM t WHERE x = 2"]).queries
    seconds, usual = [Estimate(4.0, 1.0), Estimate(2.0, 1.0)], [Estimate(1.0, 2.0), Estimate(1.0, 1.0)]
    scores = Scores(
        scored(0.5, 1.0), scored(0.1, 0.3, files=20), scored(0.1, 0.1, files=20), scored(0.4, 0.8, files=20)
    )
    (found,) = kinds_of(queries, "t", scores, seconds, usual)
    assert (found.rows_now, found.files_now, found.seconds_now) == (0.75, 7.5, 3.0)
    assert found.means == ("where",)
    assert (found.rows_then, found.files_then, found.seconds_then) == (pytest.approx(0.2), 4.0, 1.0)
    assert (found.usual, found.change) == (Estimate(1.0, 1.5), "slower")
    assert (found.rows_seen, found.files_seen) == (pytest.approx(0.1), 2.0)
    assert (found.rows_detached, found.files_detached) == (pytest.approx(0.6), 12.0)
    assert "60.0% of the rows if not attached, 10.0% for literals of the workload, by where" in str(found)


def test_usual_seconds_decide_where_they_are_known() -> None:
    """Measured seconds do not: they would give other advice on a busy machine. But no kind is in a group that they deny."""
    assert kind(1.0, 0.1).change == "gains"
    assert kind(0.1, 1.0).change == "slower"
    assert kind(0.1, 1.0, (2.0, 2.0)).change == "same"
    assert kind(1.0, 0.1, (2.0, 3.0)).change == "slower"
    assert kind(1.0, 0.1, (2.0, 1.0), measured=7.5).change == "same"
    assert kind(1.0, 1.0, (2.0, 2.0), measured=12.0).change == "slower"
    assert kind(0.0, 0.0).change == "same"
    assert kind(0.0, 0.1).change == "slower"


def test_groups_come_in_order_and_none_is_empty() -> None:
    slower, gains = kind(0.1, 0.3), kind(0.3, 0.1)
    assert list(in_groups([slower, gains]).items()) == [("gains", [gains]), ("slower", [slower])]


def test_a_layout_is_refused_for_its_worst_kind() -> None:
    kinds = [kind(1.0, 0.1), kind(1.0, 1.0, (1.0, 1.2)), kind(0.1, 0.15)]
    assert why_refused(kinds, 0.6) is None
    assert why_refused([], 0.0) is None
    assert why_refused(kinds, 0.3) == "slower than allow_slower permits: x = 1: 10.0% -> 15.0% of the rows"
    assert "(and 1 more)" in (why_refused(kinds, 0.1) or "")


@pytest.mark.parametrize("share", [-0.1, float("nan")])
def test_what_may_be_allowed(share: float) -> None:
    with pytest.raises(LayoutError, match="allow_slower"):
        LearnOptions(allow_slower=share)
