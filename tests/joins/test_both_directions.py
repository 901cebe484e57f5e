"""Conditions on lines choose among the files of orders, as long as the lines are those that were summarised."""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.opened_table import RowCondition
from tests.joins.star import KEYS, SCHEMAS, frame, rows_of
from tests.support.answers import attached_to, without_skipping

QUERY = "SELECT count(*), sum(total) FROM orders o JOIN lines l ON l.okey = o.okey WHERE l.qty = 7"
LISTED = "SELECT count(*), sum(total) FROM orders WHERE okey IN (SELECT okey FROM lines WHERE qty = 7 AND id > 1)"
OUTER = "SELECT count(*), sum(total) FROM orders o LEFT JOIN lines l ON l.okey = o.okey AND l.qty = 7"
NONE = "SELECT count(*), sum(total) FROM orders WHERE okey NOT IN (SELECT okey FROM lines WHERE qty = 7 AND okey > 0)"
RANGE = "SELECT count(*), sum(total) FROM orders o JOIN lines l USING (okey) WHERE l.day < DATE '1992-02-01'"


def written(spark: SparkSession, folder: Path, format_: str) -> dict[str, str]:
    """Lines and orders in layouts that look in both directions."""
    r, sources = Random(3), {name: str(folder / "plain" / name) for name in ("lines", "orders")}
    for name, place in sources.items():
        frame(spark, name, rows_of(name, r)).coalesce(2).write.format(format_).save(place)
    by_key = [f"SELECT * FROM orders WHERE okey >= {at} AND okey < {at + 50}" for at in range(0, 300, 50)]
    queries = [QUERY, QUERY, RANGE, RANGE.replace("02-01", "03-01"), *by_key]
    asked = hr.Workload.from_sql(queries, {t: dict(c.split() for c in SCHEMAS[t].split(", ")) for t in sources})
    options = hr.LearnOptions(block_rows=15, recurrence=1)
    learned = hr.learn_tables(spark, sources, asked, "mto", options, keys=KEYS[:1], both_directions=True)
    learned.save(folder / "layouts.json")
    again = hr.LearnedTables.load(folder / "layouts.json")
    assert again["orders"].joined == learned["orders"].joined and again.to_json() == learned.to_json()
    to = None if format_ == "delta" else str(folder / "laid out")
    places = {name: table.path for name, table in hr.apply_tables(spark, sources, again, to).items()}
    register(spark, format_, places)
    estimated = hr.score_tables(spark, sources, asked, again, exact=True)["orders"].rows_read
    assert estimated == pytest.approx(hr.table(spark, places["orders"]).score(asked).rows_read, abs=0.1)
    with pytest.raises(hr.HedgerowError, match="both directions of keys need steps=1 or more"):
        hr.learn_tables(spark, sources, asked, "mto", options, steps=0, both_directions=True)
    return places


def register(spark: SparkSession, format_: str, places: dict[str, str]) -> None:
    for name, place in places.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {format_}.`{place}`")


def opened(spark: SparkSession, sql: str = QUERY) -> int:
    """The files of orders that an attached query opens, by no ranges of keys; its answer is that of a plain one."""
    with attached_to(spark), temporary_settings(spark, {"hedgerow.partners": "false"}):
        found = spark.sql(sql).collect()
        orders = next(scan for scan in hr.last_query(spark) if scan.table == "orders")
        with without_skipping(spark):
            assert spark.sql(sql).collect() == found, sql
    assert orders.reason is None
    return orders.files_opened


def more_lines(spark: SparkSession, first: int, okey: int | None = None, count: int = 5) -> DataFrame:
    """Lines of one order, or of orders beyond all others."""
    rows = [
        (9000 + i, 1000 + i if okey is None else okey, 1, 1, 7, "1995-01-01", None) for i in range(first, first + count)
    ]
    return frame(spark, "lines", rows)


def unmet(spark: SparkSession) -> int:
    """The key of an order in a file that the query does not open."""
    with attached_to(spark), temporary_settings(spark, {"hedgerow.partners": "false"}):
        read = spark.sql("SELECT o.okey FROM orders o JOIN lines l ON l.okey = o.okey WHERE l.qty = 7").inputFiles()
    rows = spark.sql("SELECT okey, input_file_name() AS file FROM orders WHERE okey >= 0").collect()
    return int(min(row.okey for row in rows if row.file not in read))


@pytest.mark.long
def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    places = written(spark, tmp_path, "parquet")
    orders, lines = hr.table(spark, places["orders"]), hr.table(spark, places["lines"])
    files = len(orders.known)
    (stored,) = [j for part in orders.parts for j in part.entry.joined if j.joined.summaries]
    assert stored.places == (places["lines"],)  # those that were written later
    before = opened(spark)
    assert before <= files / 2 and opened(spark, RANGE) < files and opened(spark, LISTED) <= before
    assert opened(spark, OUTER) == opened(spark, NONE) == files
    assert opened(spark, QUERY.replace("l.qty = 7", "(l.qty = 7 OR l.day < DATE '1990-01-01')")) == before
    assert opened(spark, QUERY.replace("l.qty = 7", "(l.qty = 7 OR l.pkey < 5)")) == files
    orders.verify()
    skipped = unmet(spark)
    lines.append(more_lines(spark, 0, 3))
    register(spark, "parquet", places)
    assert opened(spark) == files
    lines.append(more_lines(spark, 10, skipped, 1))
    register(spark, "parquet", places)
    assert opened(spark) == files
    orders = orders.repair()
    assert opened(spark) <= files / 2
    orders.verify()
    orders.append(frame(spark, "orders", rows_of("orders", Random(5), 1000, 30)))
    lines.append(more_lines(spark, 20, 1004))
    register(spark, "parquet", places)
    opened(spark)
    hr.table(spark, places["orders"]).repair().verify()
    assert opened(spark) <= (files + 1) / 2


@pytest.mark.long
def test_delta(delta: SparkSession, tmp_path: Path) -> None:
    places = written(delta, tmp_path, "delta")
    orders, lines = hr.table(delta, places["orders"]), f"delta.`{places['lines']}`"
    files = len(orders.known)
    before = opened(delta)
    assert before <= files / 2 and opened(delta, RANGE) < files
    assert opened(delta, OUTER) == opened(delta, NONE) == files

    def append(first: int, okey: int | None = None) -> None:
        more_lines(delta, first, okey).write.format("delta").mode("append").save(places["lines"])

    append(0)
    assert opened(delta) == before  # no order has such a key
    delta.sql(f"OPTIMIZE {lines}")
    assert opened(delta) == before  # the same rows in other files
    append(10, unmet(delta))
    with patch.object(RowCondition, "_changed_since", lambda *_: []), pytest.raises(AssertionError):
        opened(delta)
    assert before <= opened(delta) < files  # only orders with this key may have other lines now
    delta.sql(f"UPDATE {lines} SET qty = 7 WHERE okey % 50 = 7")
    changed = opened(delta)
    orders = orders.repair()
    assert opened(delta) < changed <= files
    delta.sql(f"DELETE FROM {lines} WHERE qty = 7 AND okey < 250")
    deleted = opened(delta)
    orders = orders.repair()
    assert opened(delta) < deleted
    older = QUERY.replace("lines l", f"delta.`{places['lines']}` VERSION AS OF 2 l")
    assert opened(delta, older) <= files
    frame(delta, "lines", rows_of("lines", Random(8))).write.format("delta").mode("overwrite").save(places["lines"])
    assert opened(delta) == files
    orders.repair().verify()
    assert opened(delta) <= files  # the new lines are of other orders than those that the layout keeps together
