"""Queries are learned with the keys that other tables have: conditions that hold on all rows with a partner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.predicates.nodes import TRUE
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.reads_now import by_stated_facts

EVENTS, USERS = 4_000, 1_000
JOINS = {
    "a range of users": "JOIN users u ON user_id = u.id WHERE u.id BETWEEN 100 AND 700 AND amount < 50",
    "a few users": "JOIN users u ON user_id = u.id WHERE name = 'n7'",
    "several ranges": "JOIN users u ON user_id = u.id WHERE u.id % 400 < 150",
    "by text": "JOIN users u ON who = u.name WHERE u.id < 300",
    "over a step": "JOIN users u ON user_id = u.id JOIN towns t ON u.town = t.town WHERE t.country = 'c1'",
    "over a step without a condition": "JOIN users u ON user_id = u.id JOIN towns t ON u.town = t.town",
    "two users": "JOIN users u ON user_id = u.id JOIN users v ON friend = v.id WHERE u.id < 200 AND v.id > 800",
    "itself": "JOIN users u ON e.user_id = u.id JOIN events f ON f.user_id = u.id WHERE u.id < 90",
    "IN": "WHERE user_id IN (SELECT id FROM users WHERE name LIKE 'n12%')",
    "EXISTS": "WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = user_id AND u.id < 40)",
    "outer": "LEFT JOIN users u ON user_id = u.id AND u.id < 40",
    "not in": "LEFT ANTI JOIN users u ON user_id = u.id AND u.id < 40",
    "nobody": "JOIN users u ON user_id = u.id WHERE u.id < 0",
    "computed": "JOIN (SELECT max(id) AS id FROM users GROUP BY town) u ON user_id = u.id",
}
NOT_ALL = set(JOINS) - {"over a step without a condition", "outer", "not in", "nobody", "computed"}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("keys")
    spark.range(0, EVENTS, 1, 2).selectExpr(
        "id AS number",
        f"nullif(id % {USERS + 50}, 3) AS user_id",
        f"id * 7 % {USERS} AS friend",
        f"concat('n', id % {USERS}) AS who",
        "id % 100 AS amount",
    ).write.parquet(str(folder / "events"))
    users = spark.range(0, USERS, 1, 1).selectExpr("id", "concat('n', id) AS name", "nullif(id % 20, 4) AS town")
    users.write.parquet(str(folder / "users"))
    for name in ("events", "users"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    towns = "SELECT id AS town, concat('c', id % 5) AS country FROM range(20)"
    spark.sql(towns).createOrReplaceTempView("towns")
    return str(folder / "events")


def _queries(spark: SparkSession, place: str) -> dict[str, Query]:
    texts = [f"SELECT e.number FROM events e {join}" for join in JOINS.values()]
    _, queries, skipped = opened_with_queries(spark, place, hr.Workload.from_sql(texts), "events")
    assert not skipped
    return dict(zip(JOINS, queries, strict=True))


def test_they_hold_on_all_rows_with_a_partner(spark: SparkSession, place: str) -> None:
    for name, query in _queries(spark, place).items():
        predicate = query.predicate("events")
        condition = "TRUE" if predicate == TRUE else predicate_text(predicate)
        assert (predicate != TRUE) == (name in NOT_ALL), name
        assert bool(query.keyed) == (name in NOT_ALL), name
        joined = {row.number for row in spark.sql(f"SELECT e.number FROM events e {JOINS[name]}").collect()}
        kept = {row.number for row in spark.sql(f"SELECT number FROM events WHERE {condition}").collect()}
        assert joined <= kept, name
        assert name not in NOT_ALL or len(kept) < EVENTS, name


def test_joins_whose_keys_are_known_are_conditions(spark: SparkSession, place: str) -> None:
    queries = _queries(spark, place)
    left = {name for name, query in queries.items() if any(scan.joins for scan in query.scans[:1])}
    assert left == {"nobody", "itself", "computed"} & left
    assert predicate_text(queries["a few users"].predicate("events")) == "user_id = 7"


def test_plain_spark_does_not_know_them(spark: SparkSession, place: str) -> None:
    """A table as it is reads what the text of a query says."""
    asked = ["SELECT e.number FROM events e JOIN users u ON user_id = u.id WHERE u.id < 90 AND number < 7"]
    source, (query,), _ = opened_with_queries(spark, place, hr.Workload.from_sql(asked), "events")
    assert predicate_text(query.predicate("events")) == "number < 7 AND user_id >= 0 AND user_id <= 89"
    assert (query.keyed, predicate_text(query.written("events"))) == (("user_id",), "number < 7")
    (read,) = by_stated_facts(source, [query]).queries
    (without,) = by_stated_facts(source, [replace(query, scans=(Scan("events", query.written("events")),))]).queries
    assert read.rows_read == without.rows_read > 0


def test_the_layout_divides_by_them(spark: SparkSession, place: str) -> None:
    workload = hr.Workload.from_sql(
        f"SELECT sum(amount) FROM events JOIN users ON user_id = id WHERE town = {town} AND id < {below};"
        for town in range(10)
        for below in (100, 300)
    )
    options = hr.LearnOptions(block_rows=200)
    learned = hr.learn(spark, place, workload, options=options)
    assert "user_id" in str(learned.layout)
    assert hr.score(spark, place, workload, learned).rows_read < 0.5


def test_another_table_of_that_name_is_not_asked(spark: SparkSession, place: str, tmp_path: Path) -> None:
    spark.range(9).selectExpr("id AS number").createOrReplaceTempView("users")
    try:
        texts = ["SELECT number FROM events JOIN users u ON user_id = u.id WHERE u.id < 100 AND amount < 7"]
        _, (query,), skipped = opened_with_queries(spark, place, hr.Workload.from_sql(texts), "events")
        assert not skipped and predicate_text(query.predicate("events")) == "amount < 7"
    finally:
        spark.read.parquet(str(Path(place).parent / "users")).createOrReplaceTempView("users")
