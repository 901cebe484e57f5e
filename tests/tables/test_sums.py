"""The index keeps the sums of the columns that queries sum: through appends, relearn, verify and other settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import hedgerow as hr
from hedgerow.core.predicates.sql_text import feature_text, term_text
from hedgerow.pilot.autopilot import with_kept_items
from hedgerow.spark.start.session import configured
from tests.support.answers import without_skipping

ROWS, FILES = 800, 4
HUGE = 2**61
# The sum of all of `huge` is no BIGINT; that of the first and the last file is one, in some orders of their rows.
COLUMNS = (
    "id",
    "CAST(id / 7 AS DECIMAL(9, 2)) AS amount",
    "CAST(id % 100 - 50 AS SMALLINT) AS change",
    "CAST(CAST(id AS STRING) || '.5' AS DECIMAL(30, 1)) AS long",
    f"CASE id WHEN 10 THEN {HUGE}L WHEN 20 THEN {HUGE}L WHEN 250 THEN {HUGE}L WHEN 270 THEN {HUGE}L WHEN 600 THEN -{HUGE}L ELSE id END AS huge",
)
SUMMED = "SELECT sum(amount), sum(long), sum(huge), sum(x.change) FROM things x WHERE id > 3 AND huge < 9"


@pytest.fixture(params=["parquet", "delta"])
def table(request: pytest.FixtureRequest, attached: SparkSession, tmp_path: Path) -> hr.ManagedTable:
    """A table in four files, in order of its ids."""
    spark, path = attached, str(tmp_path / "source")
    if request.param == "delta":
        request.getfixturevalue("delta")
    rows(spark, 0, ROWS).repartition(3, "change").write.format(request.param).save(path)
    workload, options = hr.Workload.from_sql(SUMMED), hr.LearnOptions(block_rows=ROWS // FILES)
    learned = hr.learn(spark, path, workload, "range", options, columns=["id"], table="things")
    to = () if request.param == "delta" else (str(tmp_path / "table"),)
    return hr.apply(spark, path, learned, *to)


def rows(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end).selectExpr(*COLUMNS)


def answers(spark: SparkSession, table: hr.ManagedTable, select: str) -> tuple[list[Row], list[Row], int]:
    """The rows of plain Spark, those of the attached session, and the files that the latter opened."""
    kind = table.format.kind
    spark.read.format(kind).load(table.path).createOrReplaceTempView("t")
    with without_skipping(spark):
        plain = spark.sql(select).collect()
    ours = spark.sql(select).collect()
    return plain, ours, sum(scan.files_opened for scan in hr.last_query(spark))


def described(table: hr.ManagedTable) -> set[str]:
    return {text for text in map(feature_text, table.newest.entry.statistics) if text.startswith("sum(")}


def test_sums_stay_with_the_table(table: hr.ManagedTable, attached: SparkSession) -> None:
    spark, select = attached, "SELECT sum(amount), sum(change), count(*) FROM t"
    assert described(table) == {"sum(amount)", "sum(change)", "sum(huge)"}  # a sum of so many digits may overflow
    plain, ours, opened = answers(spark, table, select)
    assert (ours, opened) == (plain, 0)
    table = table.append(rows(spark, ROWS, ROWS + 50))
    plain, ours, opened = answers(spark, table, select)
    assert (ours, opened) == (plain, 0)
    table.verify()
    table = table.relearn(hr.Workload.from_sql("SELECT sum(id) FROM things WHERE amount > 3"))
    assert described(table) == {"sum(amount)", "sum(change)", "sum(huge)", "sum(id)"}
    rewritten = with_kept_items(hr.Learned(table.newest.layout, "things"), table)
    assert set(map(term_text, rewritten.summed)) == {"amount", "change", "huge", "id"}
    assert {"amount", "id"} <= set(map(term_text, rewritten.described))
    plain, ours, opened = answers(spark, table, "SELECT sum(id), sum(amount), sum(long) FROM t WHERE id >= 400")
    assert (ours, opened) == (plain, 3)
    with configured(spark, session__timeZone="Asia/Tokyo", ansi__enabled="false"):
        plain, ours, opened = answers(spark, table, "SELECT sum(id), sum(amount) FROM t WHERE id >= 400")
        assert (ours, opened) == (plain, 0)
    table.verify()
    rows(spark, 900, 905).coalesce(1).write.format(table.format.kind).mode("append").save(table.path)
    plain, ours, opened = answers(spark, table, "SELECT sum(amount), sum(change) FROM t WHERE id >= 400")
    assert (ours, opened) == (plain, 1)
    plain, ours, opened = answers(spark, table, "SELECT sum(id) FROM t WHERE id >= 400")
    assert (ours, opened) == (plain, 4)  # a few rows of the new file may make a sum of BIGINT overflow


def test_a_sum_that_overflows(table: hr.ManagedTable, attached: SparkSession) -> None:
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        answers(attached, table, "SELECT sum(huge) FROM t WHERE id < 400")
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        attached.sql("SELECT sum(huge) FROM t WHERE id < 400").collect()
    with configured(attached, ansi__enabled="false"):
        plain, ours, opened = answers(attached, table, "SELECT sum(huge) FROM t WHERE id < 400")
        assert (ours, opened) == (plain, 2)
        plain, ours, opened = answers(attached, table, "SELECT sum(huge) FROM t")
        assert (ours, opened) == (plain, FILES)
    plain, ours, opened = answers(attached, table, "SELECT sum(huge), sum(change) FROM t WHERE id BETWEEN 400 AND 599")
    assert (ours, opened) == (plain, 0)
