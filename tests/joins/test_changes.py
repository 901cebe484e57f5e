"""What changes of a Delta dimension leave to be told about the rows that refer to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.storage.delta_changes import changed_keys
from hedgerow.spark.storage.delta_log import delta_log
from tests.joins.star import frame, rows_of
from tests.support.answers import attached_to

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
    learned = hr.learn_tables(
        delta,
        found,
        hr.Workload.from_sql(asked),
        "mto",
        hr.LearnOptions(block_rows=40),
        keys=[("lines.okey", "orders.okey")],
    )
    hr.apply_tables(
        delta, {"lines": found["lines"]}, learned, options=hr.WriteOptions(other_tables={"orders": found["orders"]})
    )
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


@pytest.mark.long
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


@pytest.mark.long
def test_changed_keys(delta: SparkSession, places: dict[str, str]) -> None:
    orders = places["orders"]
    log = delta_log(delta, orders)
    first = log.snapshot().mark
    frame(delta, "orders", rows_of("orders", Random(5), 1000, 5)).write.format("delta").mode("append").save(orders)
    more = log.snapshot().mark
    ranges = changed_keys(delta, orders, first, more, "okey")
    assert ranges is not None and (min(a for a, _ in ranges), max(b for _, b in ranges)) == (1000, 1004)
    assert changed_keys(delta, orders, first, first, "okey") is None
    assert changed_keys(delta, orders, more, first, "okey") is None
    assert changed_keys(delta, orders, first, more, "status") is None  # no number
    assert changed_keys(delta, f"{orders}/elsewhere", first, more, "okey") is None
    kind, table, time, number = first.split(" ")
    assert changed_keys(delta, orders, f"{kind} {table} {int(time) + 1} {number}", more, "okey") is None
    assert changed_keys(delta, orders, f"{kind} another {time} {number}", more, "okey") is None
    assert changed_keys(delta, orders, "files 1f", "files 2f", "okey") is None
    delta.sql(f"DELETE FROM delta.`{orders}` WHERE okey >= 1000")
    assert changed_keys(delta, orders, more, log.snapshot().mark, "okey") == []


@pytest.mark.long
def test_a_copy_that_went_its_own_way(delta: SparkSession, places: dict[str, str], tmp_path: Path) -> None:
    """A copied folder has the same table id, and soon the same version with other rows."""
    copy, files = str(tmp_path / "copy"), len(hr.table(delta, places["lines"]).known)
    shutil.copytree(places["orders"], copy)
    delta.sql(f"UPDATE delta.`{places['orders']}` SET total = total WHERE okey = 3")
    hr.table(delta, places["lines"]).repair()
    delta.sql(f"UPDATE delta.`{copy}` SET day = DATE '1992-01-01' WHERE okey % 2 = 0")
    delta.sql(f"CREATE OR REPLACE TEMP VIEW orders AS SELECT * FROM delta.`{copy}`")
    assert opened(delta) == files
    frame(delta, "orders", rows_of("orders", Random(5), 1000, 5)).write.format("delta").mode("append").save(copy)
    assert opened(delta) == files


@pytest.mark.long
def test_two_keys_of_one_table(delta: SparkSession, places: dict[str, str]) -> None:
    """Segments whose keys lead from the same column to two columns of the same table."""
    lines, orders = places["lines"], places["orders"]
    before = set(hr.table(delta, lines).known.names)
    frame(delta, "lines", rows_of("lines", Random(7), 5000, 300)).write.format("delta").mode("append").save(lines)
    delta.sql(f"ALTER TABLE delta.`{orders}` ADD COLUMN other BIGINT")
    delta.sql(f"UPDATE delta.`{orders}` SET other = 299 - okey")
    delta.sql(f"CREATE OR REPLACE TEMP VIEW orders AS SELECT * FROM delta.`{orders}`")
    name = "substring_index(_metadata.file_path, '/lines/', -1) AS f"
    names = delta.read.format("delta").load(lines).selectExpr(name).distinct().collect()
    new = [row.f for row in names if row.f not in before]
    by_other = QUERY.replace("= orders.okey", "= orders.other")
    schemas = {
        "lines": {"okey": "bigint", "qty": "int"},
        "orders": {"other": "bigint", "okey": "bigint", "day": "date"},
    }
    asked = hr.Workload.from_sql([by_other, by_other.replace("1993", "1994")], schemas)
    learned = hr.learn_tables(
        delta, places, asked, "mto", hr.LearnOptions(block_rows=40), keys=[("lines.okey", "orders.other")]
    )
    hr.apply(delta, lines, learned["lines"], options=hr.WriteOptions(other_tables={"orders": orders}), where=new)
    hr.table(delta, lines).repair()
    for sql in (QUERY, by_other):
        found = delta.sql(sql).collect()
        delta.conf.set("hedgerow.enabled", "false")
        assert delta.sql(sql).collect() == found
        delta.conf.unset("hedgerow.enabled")


@pytest.mark.long
def test_a_key_that_is_another_column_now(delta: SparkSession, tmp_path: Path) -> None:
    """Two columns change names: what was told of the old key says nothing of the new one."""
    r, found = Random(3), {name: str(tmp_path / name) for name in ("orders", "customers")}
    for name, place in found.items():
        frame(delta, name, rows_of(name, r)).coalesce(1).write.format("delta").save(place)
    query = "SELECT count(*) FROM orders o JOIN customers c ON o.ckey = c.ckey WHERE c.balance < -5"
    queries = [query, query.replace("-5", "0"), "SELECT * FROM customers WHERE ckey < 5"]
    keys = [("orders.ckey", "customers.ckey")]
    learned = hr.learn_tables(
        delta, found, hr.Workload.from_sql(queries), "mto", hr.LearnOptions(block_rows=30), keys=keys
    )
    hr.apply_tables(delta, {"orders": found["orders"]}, learned, options=hr.WriteOptions(other_tables=found))
    orders = f"delta.`{found['orders']}`"
    mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    delta.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ({mapping})")
    for old, new in (("ckey", "kept"), ("total", "ckey"), ("kept", "total")):
        delta.sql(f"ALTER TABLE {orders} RENAME COLUMN {old} TO {new}")
    for name, place in found.items():
        delta.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM delta.`{place}`")
    plain = delta.sql(query).collect()
    with attached_to(delta):
        for _ in range(2):
            assert delta.sql(query).collect() == plain
            assert {s.files_opened == s.files for s in hr.last_query(delta) if s.table == "orders"} == {True}
            hr.table(delta, found["orders"]).repair()
