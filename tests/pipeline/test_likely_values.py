"""Queries with clocks and parameters, learned from with values of the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import HedgerowWarning
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.sql.workload import Workload
from hedgerow.tables.query_log import QueryLog
from tests.support.past_queries import past_query
from tests.support.things_table import by_id, write_things


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_things(spark, str(tmp_path_factory.mktemp("source") / "things"))


def predicates(spark: SparkSession, things: str, *conditions: str) -> list[str]:
    workload = Workload.from_sql([f"SELECT * FROM things WHERE {condition}" for condition in conditions])
    _, queries, _ = opened_with_queries(spark, things, workload, None)
    return [predicate_text(query.predicate("things")) for query in queries]


def test_the_newest_time_of_the_column_stands_for_now(spark: SparkSession, things: str) -> None:
    hour_before, day_before = predicates(
        spark, things, "ts > now() - INTERVAL 1 HOUR", "wall >= date_trunc('DAY', now()) - INTERVAL 1 DAY"
    )
    assert hour_before == "ts > TIMESTAMP_LTZ '2024-03-24 06:00:00 UTC'"
    assert day_before.startswith("wall >= TIMESTAMP")
    assert "2024-03-23 00:00:00" in day_before


def test_now_is_never_later_than_the_present(spark: SparkSession, things: str) -> None:
    (text,) = predicates(spark, things, "day > current_date()")  # the days of the table go on until 2029
    assert "2024" < text.split("'")[1] < "2029"


def test_parameters_have_values_of_the_column(spark: SparkSession, things: str) -> None:
    equal = predicates(spark, things, "number = :n")
    assert len(set(equal)) > 1
    assert all(0 <= int(text.removeprefix("number = ")) < 2000 for text in equal)
    for text in predicates(spark, things, "price BETWEEN ? AND ?"):
        bounds = [float(number) for number in re.findall(r"(\d+)BD", text)]
        assert bounds == sorted(bounds)
    assert {text.split("'")[1] for text in predicates(spark, things, "kind LIKE :k")} <= {"%n%", "%w%"}
    assert predicates(spark, things, "number = :n") == equal


def test_parameters_have_values_of_the_log(spark: SparkSession, things: str, tmp_path: Path) -> None:
    place = write_things(spark, str(tmp_path / "things"))
    logged = [past_query(f"number = {n} AND kind IN ('new', 'wax') AND price > {n}.5", 0.0, n) for n in (7, 11, 1999)]
    QueryLog.of(spark, place).append(logged)
    equal = predicates(spark, place, "number = :n")
    assert set(equal) <= {"number = 7", "number = 11", "number = 1999"} and len(set(equal)) > 1
    assert set(predicates(spark, place, "kind = ?")) <= {"kind = 'new'", "kind = 'wax'"}
    assert len(set(predicates(spark, place, "id < :n"))) > 1  # the log says nothing of ids


def test_a_condition_without_a_value_is_named(spark: SparkSession, things: str) -> None:
    with pytest.warns(HedgerowWarning, match=r"nothing is learned from 1 condition.*RAND\(\) < 0.1 in query q1"):
        assert predicates(spark, things, "rand() < 0.1 AND number = 3") == ["number = 3"]


def test_a_table_has_no_values_for_parameters(spark: SparkSession, things: str, tmp_path: Path) -> None:
    table = by_id(spark, things, str(tmp_path / "things"), ["number < 20"])
    workload = Workload.from_sql("SELECT * FROM things WHERE number = :n")
    with pytest.warns(HedgerowWarning, match="counted as TRUE: 1 condition .*: number = :n in query q1"):
        assert table.score(workload).rows_read == 1


def test_clocks_show_the_present_time_in_a_table(spark: SparkSession, things: str, tmp_path: Path) -> None:
    """`score` and `explain` say what an attached session does now."""
    table = by_id(spark, things, str(tmp_path / "things"), ["day < DATE '2025-01-01'"])
    day = spark.sql("SELECT current_date() - INTERVAL 300 DAYS").head()
    assert day
    for compared in (">=", "<"):
        now, literal = f"day {compared} current_date() - INTERVAL 300 DAYS", f"day {compared} DATE '{day[0]}'"
        scores = [table.score(Workload.from_sql(f"SELECT * FROM things WHERE {c}")) for c in (now, literal)]
        assert scores[0].rows_read == scores[1].rows_read < 1
        found, same = (hr.explain(spark, table.path, f"SELECT * FROM things WHERE {c}") for c in (now, literal))
        assert (found.opened, found.hints, found.without_match) == (same.opened, same.hints, same.without_match)
        assert found.opened < found.files
