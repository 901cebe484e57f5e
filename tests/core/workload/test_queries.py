"""Queries in and out of files, and a part of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.errors import FormatError, HedgerowError, WorkloadError
from hedgerow.core.predicates.nodes import FALSE, TRUE, And, Compare, In, Like, Opaque, Or, Prefix, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.schema import Session
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.queries import Join, Query, Scan, Workload, shape
from hedgerow.core.workload.wanted_rows import AnyRows

x, y = col("x"), col("y")
LESS, MORE = Compare(x, "<", lit(5)), Compare(x, ">", lit(7))


def join() -> Query:
    scans = (
        Scan("orders", LESS, ("x", "id")),
        Scan("items", Prefix(col("name"), "sep\u2028 \x1c\n\"'\\"), None, (Join(("order_id",), 0, ("id",)),)),
        Scan("orders", MORE, ("x",)),
    )
    return Query("a b", scans, weight=2.5, text="SELECT ...\n", dialect="duckdb")


def test_jsonl_round_trip(tmp_path: Path) -> None:
    workload = Workload((join(), *Workload.of("t", [LESS, In(x, ()), Like(x, "%ü%")])))
    assert Workload.from_jsonl(workload.to_jsonl()) == workload
    workload.save(tmp_path / "w.jsonl")
    assert Workload.from_jsonl((tmp_path / "w.jsonl").read_text(encoding="utf-8")) == workload
    with pytest.raises(HedgerowError, match=r"the queries cannot be written to .*: Not a directory"):
        workload.save(tmp_path / "w.jsonl" / "w.jsonl")


def test_jsonl_of_other_writers() -> None:
    """Only a newline ends a line: JSON may hold other separators as they are."""
    workload = Workload((join(),))
    bare = json.dumps(json.loads(workload.to_jsonl()), ensure_ascii=False)
    assert "\u2028" in bare
    assert Workload.from_jsonl(f"\n{bare}\r\n\n") == workload


@pytest.mark.parametrize(
    "line", ["{", "[]", "5", "null", '{"node": "Query"}', '{"node": "Query", "id": "1", "scans": [5]}']
)
def test_a_broken_line_is_named(line: str) -> None:
    good = Workload.of("t", [LESS]).to_jsonl()
    with pytest.raises(FormatError, match="line 2 of the workload is not a query"):
        Workload.from_jsonl(good + line + "\n")


def test_a_predicate_that_is_none() -> None:
    value = json.loads(Workload.of("t", [LESS]).to_jsonl())
    value["scans"][0]["predicate"] = 5
    with pytest.raises(FormatError):
        Workload.from_jsonl(json.dumps(value))


def test_a_row_matters_if_any_scan_of_its_table_needs_it() -> None:
    assert predicate_text(join().predicate("orders")) == predicate_text(normalise(Or((LESS, MORE))))
    assert join().predicate("customers") == FALSE
    assert join().columns("orders") == ("x", "id")
    assert join().columns("items") is None, "not known: all"


@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=60), most=st.integers(1, 40))
def test_a_part_of_the_queries_has_the_weight_of_all(weights: list[float], most: int) -> None:
    queries = tuple(Query(f"q{i}", (Scan("t", LESS),), weight=w) for i, w in enumerate(weights))
    drawn = Workload(queries).sampled(most)
    assert len(drawn) <= most
    assert sum(q.weight for q in drawn) == pytest.approx(sum(weights))
    places = [int(q.id[1:]) for q in drawn]
    assert places == sorted(set(places))
    if len(queries) <= most:
        assert drawn.queries == queries
    else:  # no query, and no run of queries, is off by more than a step
        kept = dict(zip(places, (q.weight for q in drawn), strict=True))
        off = [abs(sum(kept.get(i, 0.0) - w for i, w in enumerate(weights[:n]))) for n in range(len(weights))]
        assert max(off) <= sum(weights) / most * (0.5 + 1e-6)


def test_no_kind_of_query_is_left_out_where_a_dashboard_asks_them_in_turn() -> None:
    turn = [
        Scan("t", LESS),
        Scan("t", MORE),
        Scan("t", LESS, wanted=AnyRows(1)),
        Scan("t", Compare(col("z"), "=", lit(1))),
    ]
    queries = tuple(Query(f"q{i}", (turn[i % 4],)) for i in range(80))
    drawn = Workload(queries).sampled(40)
    assert sorted(int(q.id[1:]) % 4 for q in drawn) == sorted([0, 1, 2, 3] * 10)


def test_heavy_queries_leave_room_for_the_others() -> None:
    weights = [50.0, *[1.0] * 20, 30.0]
    drawn = Workload(tuple(Query(f"q{i}", (Scan("t", LESS),), weight=w) for i, w in enumerate(weights))).sampled(7)
    assert [(q.id, q.weight) for q in drawn if q.weight > 4] == [("q0", 50.0), ("q21", 30.0)]
    assert [q.weight for q in drawn if q.weight <= 4] == [4.0] * 5


def test_the_queries_on_a_table_speak_of_it_by_its_name() -> None:
    """In any case of letters: a predicate asked for under another spelling must not look as if nothing mattered."""
    workload = Workload((join(), *Workload.of("other", [LESS])))
    on = workload.on("ORDERS")
    assert [q.id for q in on] == ["a b"]
    assert predicate_text(on.queries[0].predicate("ORDERS")) == predicate_text(normalise(Or((LESS, MORE))))
    assert on.queries[0].tables() == ("ORDERS", "items")


def test_a_workload_of_one_table_fits_a_table_of_any_name() -> None:
    assert Workload.of("t", [LESS]).on("lake.sales").queries[0].predicate("lake.sales") == LESS


def test_a_table_the_workload_does_not_read() -> None:
    with pytest.raises(WorkloadError, match="reads items, orders, but not sales"):
        Workload((join(),)).on("sales")


def read_from(*names: str) -> Workload:
    return Workload(tuple(Query(f"q{i}", (Scan(name, LESS),)) for i, name in enumerate(names)))


@pytest.mark.parametrize("table", ["events", "web.events", "PROD.web.Events"])
def test_one_table_may_be_spelt_with_its_schema_and_catalog_or_without(table: str) -> None:
    workload = read_from("events", "web.events", "prod.web.EVENTS", "users").on(table)
    assert [q.tables() for q in workload] == [(table,)] * 3
    assert workload.skipped == (f"query q3 is left out: it reads users, not {table}",)
    assert read_from("events", "web.events").only_table() == "web.events"


def test_a_table_may_be_called_by_its_path() -> None:
    workload = read_from("events", "delta./lake/Events", "delta./lake/users").on("events", ["delta./lake/Events"])
    assert [q.tables() for q in workload] == [("events",)] * 2
    assert workload.skipped == ("query q2 is left out: it reads delta./lake/users, not events",)
    assert len(read_from("delta./lake/events").on("events", ["delta./lake/events"])) == 1


def test_a_name_that_may_mean_two_tables_is_refused() -> None:
    workload = read_from("web.events", "hr.events")
    assert workload.only_table() is None
    assert [q.id for q in workload.on("hr.events")] == ["q1"]
    with pytest.raises(WorkloadError, match=r"^events may be hr\.events or web\.events: name one with table="):
        workload.on("events")


def test_bind_spells_names_as_the_schema_does_and_leaves_out_what_does_not_fit() -> None:
    queries = (
        Query("fits", (Scan("T", Compare(col("SHIPPED"), "<=", lit("1995-03-31")), ("shipped",)),)),
        Query("misfit", (Scan("t", Compare(col("nothing"), "=", lit(1))),)),
        Query("elsewhere", (Scan("u", Compare(col("nothing"), "=", lit(1))),)),
    )
    bound = Workload(queries).bind({"t": {"Shipped": "date"}}, Session())
    assert [q.id for q in bound] == ["fits", "elsewhere"]
    assert predicate_text(bound.queries[0].predicate("t")) == "Shipped < DATE '1995-04-01'"
    assert bound.queries[0].scans[0].columns == ("Shipped",)
    assert bound.skipped == ("query misfit is left out: there is no column nothing",)


def test_shapes_forget_values() -> None:
    a = Or((And((LESS, Prefix(y, "a"))), In(x, (lit(1), lit(2)))))
    b = Or((In(x, (lit(9),)), And((Prefix(y, "zz"), Compare(x, "<", lit(77))))))
    assert shape(a) == shape(b)
    assert shape(LESS) != shape(MORE)
    text = "({} > {} * w2 + 1.5e-{}D AND f('it\\'s {}'))"
    texts = [text.format(column, n, n, n) for column in ("v1", "`v 1`", "`v 2`") for n in (3, 40)]
    assert len({shape(Opaque(text, ())) for text in texts}) == 3
    assert shape(TRUE) == "TRUE"
