"""`last_query` is about the newest query that the user ran, also if it reads no managed table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import answer
from tests.support.things_table import by_id, write_things

CONDITION = "id BETWEEN 30 AND 34"


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("last")
    source = write_things(spark, str(folder / "source"), ["id", "concat('w', id % 50) AS word"])
    return by_id(spark, source, str(folder / "things"), [CONDITION]).path


@pytest.fixture
def ask(attached: SparkSession, things: str) -> Callable[[], list[int]]:
    """Run a query of the table; return the files that its scans opened, as `last_query` says."""

    def run() -> list[int]:
        attached.sql(f"SELECT * FROM parquet.`{things}` WHERE {CONDITION}").collect()
        return [scan.files_opened for scan in hr.last_query(attached)]

    return run


def test_a_query_that_reads_no_table_of_ours(
    attached: SparkSession, things: str, ask: Callable[[], list[int]], tmp_path: Path
) -> None:
    attached.range(5).write.json(str(tmp_path / "json"))
    for sql in (
        "SELECT 1",
        "SELECT count(*) FROM range(9)",
        "VALUES (1), (2)",
        f"SELECT * FROM json.`{tmp_path / 'json'}`",
        f"SELECT * FROM parquet.`{things}` WHERE 1 = 0",
    ):
        assert ask() == [1]
        attached.sql(sql).collect()
        assert hr.last_query(attached) == [], sql
    assert ask() == [1]
    attached.createDataFrame([(1,)], "a INT").collect()
    assert hr.last_query(attached) == []


def test_what_is_no_query_of_the_user(attached: SparkSession, things: str, ask: Callable[[], list[int]]) -> None:
    """Commands, and the queries that Hedgerow's own verbs run."""
    for other in (
        lambda: attached.sql("SHOW TABLES").collect(),
        lambda: attached.sql("SET spark.sql.shuffle.partitions").collect(),
        lambda: hr.doctor(attached, things),
        lambda: hr.explain(attached, things, "id < 100"),
        lambda: hr.table(attached, things).verify(),
        lambda: attached.sql("SELECT 1"),  # not run
    ):
        assert ask() == [1]
        other()
        assert [scan.files_opened for scan in hr.last_query(attached)] == [1]


def test_a_change_of_rows_is_no_scan_of_ours(
    attached: SparkSession, delta: SparkSession, things: str, ask: Callable[[], list[int]], tmp_path: Path
) -> None:
    """The table that it changes is Delta's to read; a source of ours is told, which Delta may read with the target."""
    target = f"delta.`{tmp_path / 'delta'}`"
    delta.range(9).write.format("delta").save(str(tmp_path / "delta"))
    source = f"(SELECT id FROM parquet.`{things}` WHERE {CONDITION}) s"
    merge = f"MERGE INTO {target} t USING {source} ON t.id = s.id WHEN"
    for sql, opened in {
        f"DELETE FROM {target} WHERE id = 3": [],
        f"UPDATE {target} SET id = 20 WHERE id = 5": [],
        f"{merge} NOT MATCHED THEN INSERT *": [8],
        f"{merge} MATCHED THEN UPDATE SET id = 40": [1],
    }.items():
        assert ask() == [1]
        attached.sql(sql).collect()
        assert [scan.files_opened for scan in hr.last_query(attached)] == opened, sql


def test_delta_reads_its_own_log(
    attached: SparkSession, delta: SparkSession, ask: Callable[[], list[int]], tmp_path: Path
) -> None:
    delta.range(9).write.format("delta").save(str(tmp_path / "delta"))
    assert ask() == [1]
    frame = attached.read.format("delta").load(str(tmp_path / "delta"))
    assert [scan.files_opened for scan in hr.last_query(attached)] == [1]
    assert answer(frame).rows == 9
    assert hr.last_query(attached) == []
