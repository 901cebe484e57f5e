"""Statements that write what a query selects skip files too, and write the same as without us."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from tests.support.answers import Answer, answer, without_skipping
from tests.support.things_table import FILES, by_id, write_things

CONDITION = "id BETWEEN 30 AND 34"


@pytest.fixture(scope="module")
def query(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a query that needs one file of a managed table."""
    folder = tmp_path_factory.mktemp("writes")
    source = write_things(spark, str(folder / "source"), ["id", "concat('w', id % 50) AS word"])
    return f"SELECT * FROM parquet.`{by_id(spark, source, str(folder / 'things'), [CONDITION]).path}` WHERE {CONDITION}"


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_what_is_written_is_read_of_few_files(
    attached: SparkSession, delta: SparkSession, query: str, tmp_path: Path, kind: str
) -> None:
    def written(to: str, opened: int | None) -> Answer:
        table, path = f"writes_{kind}_{to}", f"{tmp_path}/{to}"

        def check() -> None:
            assert opened is None or [(s.files, s.files_opened) for s in hr.last_query(attached)] == [(FILES, opened)]

        attached.sql(f"CREATE TABLE {table} USING {kind} LOCATION '{path}' AS {query}")
        check()
        attached.sql(f"INSERT OVERWRITE {table} SELECT id + 1 AS id, word FROM ({query})")
        check()
        attached.sql(f"INSERT INTO {table} {query}")
        check()
        attached.sql(query).write.format(kind).mode("append").save(path)
        check()
        return answer(attached.read.format(kind).load(path))

    with without_skipping(attached):
        expected = written("off", None)
    assert written("on", 1) == expected


@pytest.mark.long
def test_a_merge_of_our_rows(attached: SparkSession, delta: SparkSession, query: str, tmp_path: Path) -> None:
    def changed(to: str) -> Answer:
        table = f"delta.`{tmp_path}/{to}`"
        attached.sql(f"CREATE TABLE {table} USING delta AS SELECT id, 'old' AS word FROM range(25, 40)")
        attached.sql(f"MERGE INTO {table} AS t USING ({query}) AS s ON t.id = s.id - 3 WHEN MATCHED THEN DELETE")
        attached.sql(
            f"MERGE INTO {table} AS t USING ({query}) AS s ON t.id = s.id + 4 "
            "WHEN MATCHED THEN UPDATE SET word = s.word WHEN NOT MATCHED THEN INSERT *"
        )
        return answer(attached.sql(f"SELECT * FROM {table}"))

    with without_skipping(attached):
        expected = changed("off")
    assert changed("on") == expected


def test_a_query_with_skipping_off_has_no_report(attached: SparkSession, query: str) -> None:
    attached.sql(query).collect()
    assert [scan.files_opened for scan in hr.last_query(attached)] == [1]
    with without_skipping(attached):
        attached.sql(query).collect()
        assert hr.last_query(attached) == []
