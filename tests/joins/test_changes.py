"""What changes of a Delta dimension leave to be told about the rows that refer to it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from hedgerow.spark.storage.delta_changes import changed_keys
from hedgerow.spark.storage.delta_log import delta_log
from tests.joins.star import frame, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

QUERY = (
    "SELECT count(*), sum(qty) FROM lines JOIN orders ON lines.okey = orders.okey WHERE orders.day < DATE '1993-02-01'"
)


@pytest.fixture
def places(delta: SparkSession, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Lines and orders in layouts; the orders lie in four files, by key."""
    r, found = Random(3), {name: str(tmp_path / name) for name in ("lines", "orders")}
    for name, place in found.items():
        rows = frame(delta, name, rows_of(name, r))
        rows.repartitionByRange(4, rows.columns[0]).write.format("delta").save(place)
    asked = [QUERY, QUERY.replace("1993", "1994"), "SELECT * FROM lines WHERE okey < 50"]
    learned = hr.learn(
        delta, found, hr.Workload.from_sql(asked), "mto", block_rows=40, keys=[("lines.okey", "orders.okey")]
    )
    hr.apply(delta, {"lines": found["lines"]}, learned, others={"orders": found["orders"]})
    for name, place in found.items():
        delta.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM delta.`{place}`")
    hr.attach(delta)
    yield found
    hr.detach(delta)


def opened(spark: SparkSession) -> int:
    """The files of lines that the query opens; its answer is that of a plain session."""
    found = spark.sql(QUERY).collect()
    lines = next(scan for scan in hr.last_query(spark) if scan.table == "lines")
    assert lines.reason is None
    spark.conf.set("hedgerow.enabled", "false")
    assert spark.sql(QUERY).collect() == found
    spark.conf.unset("hedgerow.enabled")
    return lines.files_opened


def test_changes(delta: SparkSession, places: dict[str, str]) -> None:
    files, orders = len(hr.table(delta, places["lines"]).known), f"delta.`{places['orders']}`"
    before = opened(delta)
    assert before <= files / 2
    frame(delta, "orders", rows_of("orders", Random(5), 1000, 5)).write.format("delta").mode("append").save(
        places["orders"]
    )
    assert opened(delta) == before  # no line has such a key
    delta.sql(f"OPTIMIZE {orders}")
    assert opened(delta) == before  # the same rows in other files
    frame(delta, "orders", rows_of("orders", Random(5), 300, 5)).write.format("delta").mode("append").save(
        places["orders"]
    )
    among = opened(delta)
    assert before <= among < files  # some lines led to no order, and now they do
    delta.sql(f"UPDATE {orders} SET day = DATE '1992-01-01' WHERE okey % 50 = 7")
    assert opened(delta) == files  # the file with all keys was written anew
    hr.table(delta, places["lines"]).repair()
    after = opened(delta)
    assert after < files
    delta.sql(f"ALTER TABLE {orders} ADD COLUMN more INT")
    assert opened(delta) == files  # another schema: nothing is known
    hr.table(delta, places["lines"]).repair()
    assert opened(delta) == after


def test_changed_keys(delta: SparkSession, places: dict[str, str]) -> None:
    orders = places["orders"]
    first = delta_log(delta, orders).snapshot().version
    frame(delta, "orders", rows_of("orders", Random(5), 1000, 5)).write.format("delta").mode("append").save(orders)
    ranges = changed_keys(delta, orders, first, first + 1, "okey")
    assert ranges is not None and (min(a for a, _ in ranges), max(b for _, b in ranges)) == (1000, 1004)
    assert changed_keys(delta, orders, first, first, "okey") is None
    assert changed_keys(delta, orders, first + 1, first, "okey") is None
    assert changed_keys(delta, orders, first, first + 2, "okey") is None
    assert changed_keys(delta, orders, first, first + 1, "status") is None  # no number
    assert changed_keys(delta, f"{orders}/elsewhere", first, first + 1, "okey") is None
    delta.sql(f"DELETE FROM delta.`{orders}` WHERE okey >= 1000")
    assert changed_keys(delta, orders, first + 1, first + 2, "okey") == []


def test_a_key_that_is_another_column_now(delta: SparkSession, tmp_path: Path) -> None:
    """Two columns change names: what was told of the old key says nothing of the new one."""
    r, found = Random(3), {name: str(tmp_path / name) for name in ("orders", "customers")}
    for name, place in found.items():
        frame(delta, name, rows_of(name, r)).coalesce(1).write.format("delta").save(place)
    query = "SELECT count(*) FROM orders o JOIN customers c ON o.ckey = c.ckey WHERE c.balance < -5"
    queries = [query, query.replace("-5", "0"), "SELECT * FROM customers WHERE ckey < 5"]
    keys = [("orders.ckey", "customers.ckey")]
    learned = hr.learn(delta, found, hr.Workload.from_sql(queries), "mto", block_rows=30, keys=keys)
    hr.apply(delta, {"orders": found["orders"]}, learned, others=found)
    orders = f"delta.`{found['orders']}`"
    mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    delta.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ({mapping})")
    for old, new in (("ckey", "kept"), ("total", "ckey"), ("kept", "total")):
        delta.sql(f"ALTER TABLE {orders} RENAME COLUMN {old} TO {new}")
    for name, place in found.items():
        delta.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM delta.`{place}`")
    plain = delta.sql(query).collect()
    hr.attach(delta)
    try:
        for _ in range(2):
            assert delta.sql(query).collect() == plain
            assert {s.files_opened == s.files for s in hr.last_query(delta) if s.table == "orders"} == {True}
            hr.table(delta, found["orders"]).repair()
    finally:
        hr.detach(delta)
