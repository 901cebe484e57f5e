"""Clocks and parameters in conditions: learning puts values in their places, and names each condition left without."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hedgerow.core.predicates.schema import Session
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.sql.open_values import OpenValue
from hedgerow.sql.workload import Values, Workload

SCHEMAS = {"t": {"ts": "timestamp", "d": "date", "u": "bigint", "s": "string"}, "x": {"u": "bigint", "p": "string"}}
SAME = [
    ("ts > now() - INTERVAL 1 DAY", ["ts|low|NOW() - INTERVAL '1' DAY"], []),
    ("current_timestamp() > ts", ["ts|high|CURRENT_TIMESTAMP()"], []),
    ("NOT (d < date_sub(current_date, 7))", ["d|high|DATE_ADD(CURRENT_DATE, 7 * -1)"], []),
    ("u = :uid", ["u|value|:uid"], []),
    ("u IN (?, 3, ?)", ["u|value|:parameter_1", "u|value|:parameter_2"], []),
    ("u = 1 OR ts BETWEEN :a AND :b", ["ts|low|:a", "ts|high|:b"], []),
    ("s LIKE ${word}", ["s|word|${word}"], []),
    ("ts BETWEEN :from AND :to", ["ts|low|:from", "ts|high|:to"], []),
    ("u IN (:in, :1) AND d >= :select", ["u|value|:in", "u|value|:1", "d|low|:select"], []),
    ("u = 1 AND substring(s, :from) = 'a'", [], ["SUBSTRING(s, :from) = 'a'"]),
    ("u = 1 AND rand() < 0.1", [], ["RAND() < 0.1"]),
    ("datediff(current_date(), d) < 7", [], ["DATEDIFF(CURRENT_DATE, d) < 7"]),
    ("d > current_date() AND s = current_user()", ["d|low|CURRENT_DATE"], ["s = CURRENT_USER()"]),
    ("u = :uid AND substring(s, ?) = 'a'", ["u|value|:uid"], ["SUBSTRING(s, ?) = 'a'"]),
    ("u = 3", [], []),
]


@pytest.mark.parametrize(("condition", "opened", "left_out"), SAME)
def test_open_values_are_offered_or_named(condition: str, opened: list[str], left_out: list[str]) -> None:
    met: list[OpenValue] = []

    def note(values: Sequence[OpenValue]) -> list[Values]:
        met.extend(values)
        return [{value: "'2026-11-01'" if value.term.path[0] in ("ts", "d") else "7" for value in values}]

    bound = Workload.from_sql(f"SELECT * FROM t WHERE {condition}").bind(SCHEMAS)
    _, named = bound.with_values(SCHEMAS, Session("UTC"), note)
    assert [f"{value.term.path[0]}|{value.role}|{value.text}" for value in met] == opened
    assert named == [f"{condition} in query q1" for condition in left_out]


def test_a_condition_without_a_value_is_named_and_holds_on_every_row() -> None:
    bound = Workload.from_sql("SELECT * FROM t WHERE u = :uid; SELECT * FROM t WHERE u = 3").bind(SCHEMAS)
    filled, named = bound.with_values(SCHEMAS, Session("UTC"), lambda _: [])
    assert [predicate_text(q.predicate("t")) for q in filled] == ["TRUE", "u = 3"]
    assert named == ["u = :uid in query q1"]


def test_nothing_is_filled_before_the_table_is_known() -> None:
    bound = Workload.from_sql("SELECT * FROM t WHERE u = :uid AND d > current_date()").bind(SCHEMAS)
    assert predicate_text(bound.queries[0].predicate("t")) == "TRUE"


def test_variants_share_the_weight_of_a_query_with_parameters() -> None:
    bound = Workload.from_sql("SELECT * FROM t WHERE u = :uid; SELECT * FROM t WHERE d > current_date()").bind(SCHEMAS)
    filled, named = bound.with_values(
        SCHEMAS,
        Session("UTC"),
        lambda values: [{v: f"'2026-11-0{n}'" if "CURRENT" in v.text else f"{n}" for v in values} for n in (1, 2)],
    )
    assert not named
    assert [(q.weight, predicate_text(q.predicate("t"))) for q in filled] == [
        (0.5, "u = 1"),
        (0.5, "u = 2"),
        (1.0, "d >= DATE '2026-11-02'"),
    ]


def test_a_condition_reaches_its_table_through_a_derived_table_and_a_join() -> None:
    sql = """SELECT * FROM (SELECT d AS day, count(*) AS c FROM t GROUP BY d) WHERE day = :day AND c > :n;
             SELECT * FROM t JOIN x ON t.u = x.u WHERE x.p = :plan AND t.d > current_date()"""
    bound = Workload.from_sql(sql).bind(SCHEMAS)
    texts = {":day": "DATE '2026-11-01'", ":plan": "'gold'", "CURRENT_DATE": "DATE '2026-11-02'"}
    filled, named = bound.with_values(SCHEMAS, Session("UTC"), lambda values: [{v: texts[v.text] for v in values}])
    assert predicate_text(filled.queries[0].predicate("t")) == "d = DATE '2026-11-01'"
    assert predicate_text(filled.queries[1].predicate("t")) == "d >= DATE '2026-11-03'"
    assert predicate_text(filled.queries[1].predicate("x")) == "p = 'gold'"
    assert named == ["c > :n in query q1"]


def test_a_condition_on_a_table_that_is_not_given_is_not_named() -> None:
    bound = Workload.from_sql("SELECT * FROM t JOIN x ON t.u = x.u WHERE x.p = :plan").bind(SCHEMAS)
    filled, named = bound.with_values({"t": SCHEMAS["t"]}, Session("UTC"), lambda _: [])
    assert len(filled) == 1
    assert not named
