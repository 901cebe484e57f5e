"""The autopilot learns from logged joins, keeps what they made, and follows the tables that they lead to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pilot.autopilot import Mode
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.history import History
from hedgerow.pipeline.learn_options import QUICK
from hedgerow.spark.start.session import temporary_settings
from tests.pilot.test_fixed_point import RESTLESS

OPTIONS = hr.LearnOptions(exact=False, effort=QUICK.effort, block_rows=1000)
pytestmark = pytest.mark.usefixtures("seconds_follow_rows")


@pytest.fixture
def shop(delta: SparkSession, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Lines of orders in no order, as Delta tables."""
    made = {
        "lines": delta.range(20_000).selectExpr("id", "id * 7919 % 1000 AS okey", "id % 90 AS price"),
        "orders": delta.range(1_000).selectExpr("id AS okey", "id * 37 % 100 AS day"),
    }
    places = {}
    for name, rows in made.items():
        places[name] = str(tmp_path / name)
        rows.repartition(2).write.format("delta").save(places[name])
        delta.read.format("delta").load(places[name]).createOrReplaceTempView(name)
    yield places
    for name in places:
        delta.catalog.dropTempView(name)


def ask(spark: SparkSession, days: range) -> list[int]:
    texts = (f"SELECT sum(price) FROM lines JOIN orders USING (okey) WHERE day BETWEEN {d} AND {d + 2}" for d in days)
    with temporary_settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):  # no keys are known
        return [spark.sql(text).collect()[0][0] for text in texts]


def test_it_learns_from_joins(delta: SparkSession, shop: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "rewrites", [])  # how long the rewrite took is the machine's affair
    spark, lines = delta, shop["lines"]
    with hr.log(spark, shop):
        expected = ask(spark, range(0, 96, 4))

    def look(mode: Mode = "run") -> Decision:
        return hr.autopilot(spark, lines, mode=mode, settings=RESTLESS, options=OPTIONS)

    first = look()
    assert first.action == "whole table" and first.done, first
    table = hr.table(spark, lines)
    assert [stored.joined.table for stored in table.newest.entry.joined] == ["orders"]
    table.verify()
    workload = hr.logged_tables(spark, shop)
    assert table.score(workload).rows_read < 0.5
    assert ask(spark, range(0, 96, 4)) == expected
    assert look("dry_run").action == "nothing", look("dry_run")

    spark.sql(f"UPDATE delta.`{shop['orders']}` SET day = 99 - day")
    spark.read.format("delta").load(shop["orders"]).createOrReplaceTempView("orders")
    assert hr.table(spark, lines).stale_joins() and hr.table(spark, lines).score(workload).rows_read > 0.99
    repaired = look()
    assert repaired.action in ("statistics", "whole table") and repaired.done, repaired
    table = hr.table(spark, lines)
    assert not table.stale_joins() and table.score(workload).rows_read < 0.5
    table.verify()
    assert look("dry_run").action == "nothing"

    shutil.rmtree(f"{shop['orders']}/_hedgerow")
    assert "its layout depends on orders, and their queries were not logged" in str(look("dry_run"))
