"""Only the large table of a star is rewritten; a query that reads other small tables is told what it loses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import FormatError
from hedgerow.spark.wire import ScanReport
from tests.support.answers import attached_to, without_skipping

QUERY = "SELECT sum(amount) FROM sales JOIN users USING (ukey) WHERE plan = 'p3'"


@pytest.fixture(scope="module")
def places(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Sales of users whose ids say nothing about their plans; a layout of sales by plans; a copy of the users."""
    folder = tmp_path_factory.mktemp("star")
    found = {name: str(folder / name) for name in ("sales", "users", "copied", "ours")}
    sales = spark.range(20_000).selectExpr("id * 7919 % 1000 AS ukey", "id % 97 AS amount")
    users = spark.range(1_000).selectExpr("id AS ukey", "concat('p', hash(id) % 8) AS plan")
    sales.write.parquet(found["sales"])
    for name in ("users", "copied"):
        users.write.parquet(found[name])
    asked = hr.Workload.from_sql([QUERY.replace("p3", f"p{n}") for n in range(8)])
    given = {name: found[name] for name in ("sales", "users")}
    learned = hr.learn_tables(spark, given, asked, options=hr.LearnOptions(block_rows=1000, recurrence=1))
    options = hr.WriteOptions(other_tables={"users": found["users"]})
    hr.apply(spark, found["sales"], learned["sales"], found["ours"], options)
    learned.save(folder / "layouts.json")
    with pytest.raises(FormatError, match="LearnedTables"):
        hr.Learned.load(folder / "layouts.json")
    spark.read.parquet(found["ours"]).createOrReplaceTempView("sales")
    yield found
    for name in ("sales", "users"):
        spark.catalog.dropTempView(name)


def scan_of(spark: SparkSession, users: str) -> ScanReport:
    """The scan of sales in a query that reads these users; its answer is that of a plain session."""
    spark.read.parquet(users).createOrReplaceTempView("users")
    with attached_to(spark):
        found = spark.sql(QUERY).collect()
        scan = next(scan for scan in hr.last_query(spark) if scan.table != "users")
        with without_skipping(spark):
            assert spark.sql(QUERY).collect() == found
    return scan


def test_the_tables_that_the_index_describes(spark: SparkSession, places: dict[str, str]) -> None:
    scan = scan_of(spark, places["users"])
    assert scan.reason is None and scan.files_opened < scan.files / 2
    explained = hr.explain(spark, places["ours"], QUERY)
    assert explained.opened == scan.files_opened and "skip nothing" not in str(explained)


def test_a_copy_of_them(spark: SparkSession, places: dict[str, str]) -> None:
    scan = scan_of(spark, places["copied"])
    assert scan.reason is not None and scan.reason.startswith("the rows of ukey->users are not those that the index")
    assert scan.files_opened == scan.files
    explained = hr.explain(spark, places["ours"], QUERY)
    assert explained.opened == scan.files
    assert f"conditions on users skip nothing: the query reads {places['copied']}" in str(explained).replace(
        "file:", ""
    )
    assert "no condition on them is known to the index" in str(explained)


def test_they_have_changed(spark: SparkSession, places: dict[str, str]) -> None:
    more = spark.range(1_000, 1_010).selectExpr("id AS ukey", "'p3' AS plan")
    more.write.mode("append").parquet(places["users"])
    scan = scan_of(spark, places["users"])
    assert scan.reason is not None and "repair() describes it again" in scan.reason
    assert "until repair: it has changed since it was indexed" in str(hr.explain(spark, places["ours"], QUERY))
    hr.table(spark, places["ours"]).repair()
    assert scan_of(spark, places["users"]).reason is None
