"""Queries of an attached session answer as ever, and open just the files that the index names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import configured
from tests.support.answers import Answer, Scan, answer, ask, attached_to, without_skipping
from tests.support.delta_tables import by_number, more, now, write
from tests.support.lay_out import by_ranges
from tests.support.things_table import FILES, ROWS, by_id, write_things


def both(spark: SparkSession, sql: str) -> tuple[list[Scan], list[Scan]]:
    """Run it without us and with us; the answers have to be equal. Which scans there were."""
    with without_skipping(spark):
        expected, plainly = ask(spark.sql(sql))
    found, opened = ask(spark.sql(sql))
    assert found == expected, sql
    told = sorted(report.files_opened for report in hr.last_query(spark))
    # Spark may see that it needs no scan, or that two are one, or skip by the name of a file.
    if len(told) == len(opened) and "_metadata" not in sql:
        assert told == sorted(scan.files for scan in opened), sql
    return plainly, opened


def files(scans: list[Scan]) -> int:
    return sum(scan.files for scan in scans)


def check_reports(spark: SparkSession, name: str, table: str) -> None:
    sql = f"SELECT id FROM {name} WHERE number < 30 UNION ALL SELECT count(*) FROM {name} WHERE word LIKE '%c%'"
    _, opened = both(spark, f"{sql} AND (SELECT max(number) FROM {name} WHERE id < 20) > 3")
    reports = hr.last_query(spark)
    assert sorted(r.files_opened for r in reports) == sorted(scan.files for scan in opened)
    assert {r.table for r in reports} == {table}
    assert all(r.files_opened <= r.files and r.bytes_opened <= r.bytes and 0 < r.seconds < 30 for r in reports)
    assert min(r.files_opened for r in reports) < max(r.files for r in reports)
    assert min(r.bytes_opened for r in reports) < max(r.bytes for r in reports)


# --- sessions and switches ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    asked = [
        "number < 100", "hour(ts) = 3", "length(word) = 2", "CAST(word AS STRING) LIKE '%9'",
        "date_format(ts, 'HH') = '05'",
    ]  # fmt: skip
    with configured(spark, session__timeZone="UTC"):
        return by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), asked).path


def opened(spark: SparkSession, sql: str) -> int:
    return files(both(spark, sql)[1])


def test_reports(attached: SparkSession, things: str) -> None:
    check_reports(attached, f"parquet.`{things}`", "things")


@pytest.mark.long
def test_switches(spark: SparkSession, things: str) -> None:
    sql = f"SELECT * FROM parquet.`{things}` WHERE number < 20"
    assert files(ask(spark.sql(sql))[1]) == FILES
    with pytest.raises(hr.HedgerowError, match="not attached"):
        hr.last_query(spark)
    hr.attach(spark)
    hr.attach(spark)
    assert opened(spark, sql) == 1
    with without_skipping(spark):
        assert files(ask(spark.sql(sql))[1]) == FILES
    hr.detach(spark)
    hr.detach(spark)
    assert files(ask(spark.sql(sql))[1]) == FILES


def test_kept_frames_and_caches(attached: SparkSession, things: str) -> None:
    frame = attached.read.parquet(things).where("number < 20")
    assert frame.count() == 20 and len(frame.inputFiles()) == 1
    kept = frame.cache()
    try:
        assert kept.count() == 20 and kept.where("number < 5").count() == 5
        assert attached.read.parquet(things).where("number < 30").count() == 30
    finally:
        kept.unpersist()
    joined = attached.read.parquet(things).alias("a").join(attached.read.parquet(things).alias("b"), "number")
    found, scans = ask(joined.where("number < 20").selectExpr("a.id", "b.word"))
    assert found.rows == 20 and files(scans) <= 2, "the condition on the key holds for both"


ODD = [
    "hour(ts) = 3 AND number < 500", "ts = TIMESTAMP '2024-03-10 03:00:00'",
    "date_format(ts, 'HH') = '05' AND number < 300", "NOT (log10(number + 1) > 1)", "NOT (length(word) = 2)",
    "word LIKE '%\\\\_9' OR number < 3", "word LIKE '_9'", "NOT (word LIKE '%9' AND rand() < 2)",
    "number <=> 5 OR items IS NULL", "_metadata.file_name LIKE '%part-00003%' AND number > 100",
    "number IN (1, 2, 1999, NULL)", "number NOT IN (SELECT number FROM parquet.`{t}` WHERE number > 3)",
    "coalesce(number, 5) < 3", "CASE WHEN number < 5 THEN true END", "early AND NOT late",
]  # fmt: skip


@pytest.mark.parametrize("zone", ["America/New_York", pytest.param("UTC", marks=pytest.mark.long)])
def test_odd_conditions(attached: SparkSession, things: str, zone: str) -> None:
    with configured(attached, session__timeZone=zone):
        for c in ODD:
            both(attached, f"SELECT * FROM parquet.`{things}` WHERE {c.format(t=things)}")
        assert opened(attached, f"SELECT id FROM parquet.`{things}` WHERE number < 20") == 1
        few = opened(attached, f"SELECT id FROM parquet.`{things}` WHERE length(word) = 2 AND number < 20")
        assert few == 1


@pytest.mark.long
def test_the_hour_that_comes_twice(attached: SparkSession, tmp_path: Path) -> None:
    """In New York 01:30 came twice on 3 November 2024: a literal is one of the two."""
    rows = attached.range(4000).selectExpr(
        "id AS number", "TIMESTAMP_LTZ '2024-11-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, id) AS ts"
    )
    learned = by_ranges(attached, rows, "ts", 10, ["ts < '2024-11-02'"], sample_rows=4000)
    path = hr.apply(attached, rows, learned, str(tmp_path / "t")).path
    with configured(attached, session__timeZone="America/New_York"):
        for minutes in (3210, 3269, 3270):  # around 05:30 and 06:30 in UTC
            c = f"ts = TIMESTAMP_LTZ '2024-11-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, 0, {minutes})"
            found, scans = ask(attached.sql(f"SELECT * FROM parquet.`{path}` WHERE {c}"))
            assert found.rows == 1 and files(scans) == 1, c


def test_a_view_made_under_other_settings(attached: SparkSession, things: str) -> None:
    with configured(attached, session__timeZone="Asia/Kathmandu"):
        attached.sql(f"CREATE OR REPLACE VIEW other_zone AS SELECT *, hour(ts) AS h FROM parquet.`{things}`")
    try:
        with configured(attached, session__timeZone="UTC"):
            both(attached, "SELECT * FROM other_zone WHERE h = 3")
            both(attached, "SELECT * FROM other_zone WHERE h = 3 AND number < 50")
    finally:
        attached.sql("DROP VIEW other_zone")


def test_a_function_with_the_name_of_one_of_spark(attached: SparkSession, things: str) -> None:
    attached.udf.register("length", lambda word: 2, "int")
    try:
        both(attached, f"SELECT * FROM parquet.`{things}` WHERE length(word) = 2 AND number < 100")
        both(attached, f"SELECT * FROM parquet.`{things}` WHERE NOT (length(word) = 2)")
    finally:
        attached.sql("DROP TEMPORARY FUNCTION length")


@pytest.mark.long
def test_another_schema_over_the_files(attached: SparkSession, things: str) -> None:
    frame = attached.read.schema("id BIGINT, number INT, day DATE, word STRING").parquet(things)
    assert answer(frame.where("number < 20")).rows == 20
    assert files(ask(frame.where("number < 20"))[1]) == 1
    renamed = attached.read.schema("id INT, number INT").parquet(things).where("id < 20 AND number >= 0")
    assert len(renamed.inputFiles()) == FILES, "id is no INT in the table"


def test_files_of_others(attached: SparkSession, things: str, tmp_path: Path) -> None:
    shutil.copytree(things, tmp_path / "things")
    path = str(tmp_path / "things")
    attached.read.parquet(things).where("id < 10").coalesce(1).write.mode("append").parquet(path)
    assert opened(attached, f"SELECT * FROM parquet.`{path}` WHERE number < 20") == 2
    hr.table(attached, path).append(attached.read.parquet(things).where("id < 5"))
    sql = f"SELECT * FROM parquet.`{path}` WHERE number < 20"
    assert answer(attached.sql(sql)).rows == 35


def test_what_goes_wrong_prunes_nothing(
    spark: SparkSession, things: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(things, tmp_path / "things")
    sql = f"SELECT * FROM parquet.`{tmp_path / 'things'}` WHERE number < 20"

    def broken(*_: object) -> Any:
        raise RuntimeError("the lights went out")

    with attached_to(spark):
        monkeypatch.setattr("hedgerow.tables.opened_table.normalise", broken)
        assert opened(spark, sql) == FILES
        assert "the lights" in (hr.last_query(spark)[0].reason or "")
        monkeypatch.undo()
        index = next((tmp_path / "things" / "_hedgerow").glob("index-*"))
        index.write_bytes(b"no longer what it was")
        index.with_name(f".{index.name}.crc").unlink(missing_ok=True)
        hr.attach(spark)
        assert opened(spark, sql) == FILES


# --- Delta ----------------------------------------------------------------------------------------


@pytest.fixture
def path(delta: SparkSession, tmp_path: Path) -> str:
    path = write(delta, str(tmp_path / "things"), enableDeletionVectors="true")
    by_number(delta, path, ["number < 100", "word LIKE '%9'"])
    return path


@pytest.mark.long
def test_delta(attached: SparkSession, path: str) -> None:
    t = f"delta.`{path}`"
    more(attached).coalesce(1).write.format("delta").mode("append").save(path)
    attached.sql(f"DELETE FROM {t} WHERE number % 100 = 7")
    for c in ("number < 20", "number = 7", "word LIKE '%9' AND number < 300", "number > 1990", "kind IS NULL"):
        both(attached, f"SELECT * FROM {t} WHERE {c}")
    with configured(attached, session__timeZone="Asia/Kathmandu"):
        both(attached, f"SELECT * FROM {t} WHERE hour(ts) = 3 AND number < 500")
    # what Delta's own statistics do not know
    attached.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')")
    plainly, opened_ = both(attached, f"SELECT id FROM {t} WHERE word LIKE '%9' AND number BETWEEN 100 AND 120")
    assert files(opened_) <= files(plainly)
    both(attached, f"SELECT * FROM {t} VERSION AS OF 1 WHERE number < 20")
    both(attached, f"SELECT * FROM {t} VERSION AS OF 0 WHERE number < 20")
    both(attached, f"SELECT * FROM {t} WHERE number < 20 LIMIT 3 OFFSET 0")
    attached.sql(f"OPTIMIZE {t}")
    both(attached, f"SELECT * FROM {t} WHERE number < 20")


@pytest.mark.long
def test_writes_pass(attached: SparkSession, path: str, tmp_path: Path) -> None:
    """The same statements with and without us give the same table."""

    def changed(to: str) -> Answer:
        shutil.copytree(path, to)
        t = f"delta.`{to}`"
        attached.sql(f"DELETE FROM {t} WHERE number < 20")
        attached.sql(f"UPDATE {t} SET word = 'new' WHERE number BETWEEN 100 AND 120")
        attached.sql(f"INSERT INTO {t} SELECT * FROM {t} WHERE number BETWEEN 300 AND 310")
        source = f"(SELECT number + 1 AS n FROM {t} WHERE number BETWEEN 500 AND 550 AND word LIKE '%9')"
        attached.sql(
            f"MERGE INTO {t} USING {source} ON number = n WHEN MATCHED THEN UPDATE SET kind = 'm' "
            "WHEN NOT MATCHED BY SOURCE AND number > 1990 THEN DELETE"
        )
        return answer(now(attached, to))

    with without_skipping(attached):
        expected = changed(str(tmp_path / "off"))
    assert changed(str(tmp_path / "on")) == expected


@pytest.mark.long
def test_streams_pass(attached: SparkSession, path: str, tmp_path: Path) -> None:
    streamed = attached.readStream.format("delta").load(path).where("number < 20")
    query = (
        streamed.writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "copy"))
    )
    assert query.awaitTermination(300)
    assert now(attached, str(tmp_path / "copy")).count() == 20
    assert now(attached, path).count() == ROWS
