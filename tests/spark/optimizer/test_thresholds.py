"""ORDER BY with LIMIT where no file matches as a whole: a query looks into a few files for a threshold of its own.

The table is that of `test_more_than_where`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import configured, temporary_settings
from tests.spark.optimizer.test_more_than_where import COLUMNS, FILES, ROWS, both, laid_out, means, over, path
from tests.support.small_tables import as_if_large

__all__ = ["over", "path"]  # the fixtures

# A few files are read first; the files of the WHERE and these are opened.
PROBED = {
    "some of all files": ("SELECT * FROM t WHERE flag ORDER BY ts DESC LIMIT 10", 8),
    "with an offset": ("SELECT id FROM t WHERE kind = 'n' ORDER BY id LIMIT 10 OFFSET 30", 8),
    "of some files": ("SELECT id FROM t WHERE flag AND id < 1400 ORDER BY id DESC LIMIT 10", 6),
    "a pattern": ("SELECT word FROM t WHERE word LIKE '%7%' ORDER BY price DESC, id LIMIT 9", 8),
    "ties": ("SELECT id FROM t WHERE flag ORDER BY part DESC, id LIMIT 30", 8),
    "nulls last": ("SELECT id, tied FROM t WHERE kind = 'w' ORDER BY tied NULLS LAST, id LIMIT 40", 8),
    "nulls first": ("SELECT id, early FROM t WHERE flag ORDER BY early DESC NULLS FIRST, id LIMIT 400", None),
    "nulls behind": ("SELECT id, early FROM t WHERE flag ORDER BY early DESC, id LIMIT 340", None),
    "a day": ("WITH c AS (SELECT id AS a, day AS b FROM t WHERE flag) SELECT a FROM c ORDER BY b, a LIMIT 3", 8),
    "too few rows in the first files": ("SELECT id FROM t WHERE word IN ('7', '407', '807', '1207', '1607') ORDER BY ts LIMIT 4", 8),
    "too few rows at all": ("SELECT id FROM t WHERE word IN ('7', '407', '807', '1207', '1607') ORDER BY ts DESC LIMIT 40", 8),
    "none": ("SELECT id FROM t WHERE word = 'nothing' ORDER BY ts DESC LIMIT 4", 8),
    "below a join": ("SELECT a.id, b.word FROM (SELECT id FROM t WHERE flag ORDER BY ts DESC LIMIT 5) a JOIN t b ON a.id = b.id ORDER BY 1", 16),
    "in a subquery": ("SELECT max(id) FROM t WHERE id > (SELECT min(i) FROM (SELECT id AS i FROM t WHERE flag ORDER BY ts DESC LIMIT 5))", 16),
    "two limits": ("SELECT id FROM (SELECT id, ts FROM t WHERE flag ORDER BY ts DESC LIMIT 50) ORDER BY id LIMIT 5", 8),
    "a union of two": ("(SELECT id FROM t WHERE flag ORDER BY ts LIMIT 2) UNION ALL (SELECT id FROM t WHERE kind = 'n' ORDER BY ts DESC LIMIT 2)", 16),
}  # fmt: skip
NOT_PROBED = {
    "a float": "SELECT id FROM t WHERE flag ORDER BY odd DESC, id LIMIT 10",
    "a text": "SELECT id FROM t WHERE flag ORDER BY text DESC LIMIT 10",
    "an expression": "SELECT id FROM t WHERE flag ORDER BY month(day) DESC, id LIMIT 10",
    "many rows": "SELECT id FROM t WHERE flag ORDER BY ts DESC LIMIT 20000",
    "a subquery in the condition": "SELECT id FROM t WHERE flag AND id < (SELECT max(early) FROM t) ORDER BY ts DESC LIMIT 10",
    "rows that may fail": "SELECT id, CAST(word AS INT) FROM t WHERE flag AND id < 1900 ORDER BY ts LIMIT 5",
}  # fmt: skip


@pytest.fixture
def eager() -> Iterator[None]:
    with as_if_large():
        yield


@pytest.mark.parametrize("sql, files", PROBED.values(), ids=PROBED)
def test_a_query_looks_for_a_threshold(over: SparkSession, eager: None, sql: str, files: int | None) -> None:
    plain, ours = both(over, sql)
    assert list(map(str, ours)) == list(map(str, plain))
    scans = hr.last_query(over)
    probes = [scan.files_opened for scan in scans if scan.means == "probe"]
    if files is not None:
        assert set(probes) == {1}
        assert sum(scan.files_opened for scan in scans) - sum(probes) <= files


@pytest.mark.parametrize("sql", NOT_PROBED.values(), ids=NOT_PROBED)
def test_other_queries_look_for_none(over: SparkSession, eager: None, sql: str) -> None:
    if "CAST" not in sql:
        plain, ours = both(over, sql)
        assert list(map(str, ours)) == list(map(str, plain))
    over.sql(sql)._jdf.queryExecution().optimizedPlan()
    assert "probe" not in means(over)


def test_row_groups_beyond_the_threshold_are_not_read(over: SparkSession, eager: None) -> None:
    def rows_read(sql: str) -> int:
        frame = over.sql(sql)
        frame.collect()
        scans = frame._jdf.queryExecution().executedPlan().collectLeaves()
        return sum(scans.apply(i).metrics().apply("numOutputRows").value() for i in range(scans.size()))

    sql = PROBED["some of all files"][0]
    with configured(over, adaptive__enabled="false"):
        assert rows_read(sql) == ROWS // FILES
        with temporary_settings(over, {"hedgerow.topk": "false"}):
            assert rows_read(sql) == ROWS


def test_a_file_that_the_index_does_not_know_forbids_a_probe(
    spark: SparkSession, attached: SparkSession, eager: None, tmp_path: Path
) -> None:
    source = str(tmp_path / "source")
    spark.range(ROWS).selectExpr(*COLUMNS).coalesce(1).write.parquet(source)
    path = laid_out(spark, source, str(tmp_path / "table"))
    sql = PROBED["too few rows at all"][0]
    attached.read.parquet(path).createOrReplaceTempView("t")
    assert both(attached, sql)[0] == both(attached, sql)[1] and "probe" in means(attached)
    spark.range(-30, 0).selectExpr(*COLUMNS).coalesce(1).write.mode("append").parquet(path)
    attached.read.parquet(path).createOrReplaceTempView("t")
    plain, ours = both(attached, sql)
    assert ours == plain and "probe" not in means(attached)


def test_thresholds_on_delta(delta: SparkSession, attached: SparkSession, eager: None, tmp_path: Path) -> None:
    """Renamed columns, rows deleted by vectors, a column that old files lack, and a wider type."""
    path = str(tmp_path / "table")
    writer = delta.range(ROWS).selectExpr(*COLUMNS).repartition(3, "price").write.format("delta")
    for name in ("columnMapping.mode=name", "enableDeletionVectors=true", "enableTypeWidening=true"):
        writer = writer.option("delta." + name.split("=")[0], name.split("=")[1])
    writer.save(path)
    laid_out(delta, path)

    def check(*questions: str) -> list[bool]:
        attached.read.format("delta").load(path).createOrReplaceTempView("t")
        probed = []
        for sql in questions:
            plain, ours = both(attached, sql)
            assert list(map(str, ours)) == list(map(str, plain)), sql
            probed.append("probe" in means(attached))
        return probed

    newest, oldest = (
        "SELECT * FROM t WHERE flag ORDER BY ts DESC LIMIT 10",
        "SELECT * FROM t WHERE flag ORDER BY id LIMIT 7",
    )
    assert check(newest, oldest) == [True, True]
    delta.sql(f"DELETE FROM delta.`{path}` WHERE id > 1980 OR id < 251 AND flag AND id > 3")
    assert check(newest, oldest) == [True, True]
    delta.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN ts TO `the time`")
    delta.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN tied TO ts")
    check(
        "SELECT * FROM t WHERE flag ORDER BY `the time` DESC LIMIT 10",
        "SELECT * FROM t WHERE flag ORDER BY ts DESC, id LIMIT 9",
    )
    delta.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN late INT")
    check("SELECT * FROM t WHERE flag ORDER BY late, id LIMIT 9", oldest)
    delta.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN part TYPE BIGINT")
    check(
        "SELECT id FROM t WHERE flag ORDER BY part DESC, id LIMIT 9",
        "SELECT id FROM t WHERE flag ORDER BY part, id LIMIT 9",
    )
