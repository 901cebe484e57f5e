"""Delta tables in place: each promise of a rewrite, on the real jar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.delta_log import Conflict
from tests.support.answers import answer, ask
from tests.support.delta_tables import ASKED, FILES, by_number, check, data_files, more, now, write
from tests.support.things_table import COLUMNS, ROWS


@pytest.fixture
def path(delta: SparkSession, tmp_path: Path) -> str:
    return write(delta, str(tmp_path / "things"), enableDeletionVectors="true", enableChangeDataFeed="true")


@pytest.mark.long
def test_history_time_travel_and_change_feed(delta: SparkSession, path: str) -> None:
    delta.sql(f"DELETE FROM delta.`{path}` WHERE number < 30")
    first = answer(delta.read.format("delta").option("versionAsOf", 0).load(path))
    table = by_number(delta, path)
    [newest, *_] = delta.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    assert newest["version"] == 2 and newest["operation"] == "OPTIMIZE"
    assert newest["operationMetrics"]["numAddedFiles"] == str(len(table.files()))
    assert answer(delta.read.format("delta").option("versionAsOf", 0).load(path)) == first
    assert answer(table.read(version=0)) == first
    assert answer(table.read(where="number < 100", version=0)).rows == 100
    assert answer(table.read(where="number < 100", version=2)).rows == 70
    feed = delta.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    assert feed.count() == 0


@pytest.mark.long
def test_rows_keep_their_ids(delta: SparkSession, tmp_path: Path) -> None:
    path = write(delta, str(tmp_path / "things"), enableRowTracking="true")

    def ids() -> Any:
        rows = now(delta, path).selectExpr("id", "_metadata.row_id AS r", "_metadata.row_commit_version AS v").collect()
        return {row["id"]: (row["r"], row["v"]) for row in rows}

    before = ids()
    table = by_number(delta, path)
    assert ids() == before
    table.rollback()
    assert ids() == before


@pytest.mark.long
def test_partitions(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    frame = delta.range(ROWS).selectExpr(*COLUMNS, "IF(id % 7 = 0, NULL, concat('a b=', id % 3)) AS part")
    frame.repartition(3).write.format("delta").partitionBy("part", "late").save(path)
    before = answer(now(delta, path))
    table = by_number(delta, path)
    assert answer(now(delta, path)) == before
    assert table.snapshot().partition_columns == ["part", "late"]
    asked = [*ASKED, "part = 'a b=1' AND number < 200", "part IS NULL", "late AND number < 1200"]
    assert check(delta, table, asked) > FILES
    assert len(table.files(where="part IS NULL")) < len(table.files())
    kept = set(table.files())
    again = by_number(delta, path, where="part = 'a b=1'")
    assert answer(now(delta, path)) == before
    assert kept - set(again.files()) == {n for n in kept if "%253D1" in n}
    assert check(delta, again, asked) > FILES
    [some, *others] = again.files()
    once_more = by_number(delta, path, where=[some])
    assert set(others) < set(once_more.files()) and some not in once_more.files()
    assert answer(now(delta, path)) == before
    with pytest.raises(hr.HedgerowError, match="whole partitions, only by part, late"):
        by_number(delta, path, where="number < 5")
    with pytest.raises(hr.HedgerowError, match="has no file x"):
        by_number(delta, path, where=["x.parquet"])
    with pytest.raises(hr.HedgerowError, match="has no file x"):
        again.lay_out(["x.parquet"])


@pytest.mark.long
def test_partitions_of_any_time(delta: SparkSession, tmp_path: Path) -> None:
    """Times without a zone that the session's zone skips, and years that Python does not have."""
    path = str(tmp_path / "things")
    at = "TIMESTAMP_NTZ'2024-03-10 02:30:00' + make_dt_interval(id % 2) AS at"
    with temporary_settings(delta, {"spark.sql.session.timeZone": "America/New_York"}):
        frame = delta.range(ROWS).selectExpr(*COLUMNS, at, "DATE'+10000-01-01' AS far")
        frame.write.format("delta").partitionBy("at", "far").save(path)
        before = answer(now(delta, path))
        table = by_number(delta, path)
        assert answer(now(delta, path)) == before
        assert check(delta, table, [*ASKED, "at < TIMESTAMP_NTZ'2024-03-11'", "far > DATE'9999-01-01'"])


@pytest.mark.long
def test_properties_and_statistics_for_every_reader(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "wide")
    many = delta.range(ROWS).selectExpr(
        "id", *(f"id % {i + 2} AS c{i}" for i in range(40)), "CAST(id AS INT) AS number"
    )
    many.repartition(3).write.format("delta").option("delta.logRetentionDuration", "interval 7 days").save(path)
    hr_table = by_number(delta, path, ["number < 100", "number > 1900", "c39 = 3"])
    properties = hr_table.snapshot().properties
    assert properties["delta.logRetentionDuration"] == "interval 7 days"
    assert {"id", "c0", "number", "c39"} <= set(properties["delta.dataSkippingStatsColumns"].split(","))
    plan = now(delta, path).where("number < 100").select("id")
    assert ask(plan)[1][0].files == 1, "Delta itself skips"


@pytest.mark.long
def test_statistics_of_names_that_are_quoted(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "odd")
    delta.sql(
        f"CREATE TABLE delta.`{path}` (`a, b` INT, `c``d, ` INT, `x.y` INT, number INT) USING delta TBLPROPERTIES"
        " ('delta.columnMapping.mode' = 'name', 'delta.dataSkippingStatsColumns' = '`a, b`,`c``d, `')"
    )
    columns = [f"CAST(id % {n} AS INT) AS {name}" for n, name in ((7, "`a, b`"), (9, "`c``d, `"), (50, "`x.y`"))]
    rows = delta.range(ROWS).selectExpr(*columns, "CAST(id * 7919 % 2000 AS INT) AS number")
    rows.write.format("delta").mode("append").save(path)
    before = answer(now(delta, path))
    asked = ["number < 100", "`x.y` = 3 AND number < 500", "`a, b` = 2 AND `c``d, ` = 4"]
    table = by_number(delta, path, asked)
    stated = table.snapshot().properties["delta.dataSkippingStatsColumns"]
    assert stated.startswith("`a, b`,`c``d, `,") and {"number", "`x.y`"} == set(stated.split(",")[4:])
    assert answer(now(delta, path)) == before and check(delta, table, asked) > 0


@pytest.mark.long
def test_a_name_of_the_catalog(delta: SparkSession, path: str) -> None:
    delta.sql(f"CREATE TABLE things_d USING delta LOCATION '{path}'")
    try:
        table = by_number(delta, "things_d")
        assert table.name == "things" and len(hr.table(delta, "spark_catalog.default.things_d").files()) == FILES
        assert len(hr.table(delta, path).files(where="number < 5")) == 1
    finally:
        delta.sql("DROP TABLE things_d")


# --- what others do before and after --------------------------------------------------------------


@pytest.mark.long
def test_files_of_others(delta: SparkSession, path: str) -> None:
    table = by_number(delta, path)
    more(delta).coalesce(1).write.format("delta").mode("append").save(path)
    assert len(table.files(where="number < 5")) == 1, "of the other file Delta's own statistics tell"
    assert len(table.files(where="number < 5 OR length(word) < 0")) == FILES + 1
    assert check(delta, table, [*ASKED, "number > 10050"]) > 0
    told = table.describe()
    assert len(told["unknown_files"]) == 1 and told["unknown_rows"] == pytest.approx(100 / (ROWS + 100), abs=1e-4)
    assert table.verify()["unknown_files"] == 1
    delta.sql(f"OPTIMIZE delta.`{path}`")
    told = table.describe()
    assert told["layout_files_left"] == 0 and told["unknown_rows"] == 1.0
    check(delta, table)
    assert len(table.files(where="number < 5", version=1)) == 1, "the version before is as it was"


@pytest.mark.long
def test_rollback(delta: SparkSession, path: str) -> None:
    before = sorted(now(delta, path).inputFiles())
    table = by_number(delta, path)
    more(delta).write.format("delta").mode("append").save(path)
    back = table.rollback()
    assert set(before) < set(now(delta, path).inputFiles())
    assert now(delta, path).count() == ROWS + 100
    assert back.history()[0]["operation"] == "rollback"
    feed = delta.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    assert feed.count() == 100
    with pytest.raises(hr.HedgerowError, match="no rewrite of Hedgerow's"):
        back.rollback()
    again = by_number(delta, path)
    delta.sql(f"DELETE FROM delta.`{path}` WHERE number = 5")
    with pytest.raises(hr.HedgerowError, match="others changed its files"):
        again.rollback()


@pytest.mark.long
def test_rollback_to_what_the_table_no_longer_may_have(delta: SparkSession, path: str) -> None:
    delta.sql(f"DELETE FROM delta.`{path}` WHERE number = 5")
    table = by_number(delta, path)
    delta.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    delta.sql(f"ALTER TABLE delta.`{path}` DROP FEATURE deletionVectors")
    kept = now(delta, path).count()
    one_sentence(table.rollback, "cannot be taken back")
    assert now(delta, path).count() == kept


# --- refusals -------------------------------------------------------------------------------------


def one_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises(hr.HedgerowError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


@pytest.mark.long
def test_refused(delta: SparkSession, path: str, tmp_path: Path) -> None:
    odd = write(delta, str(tmp_path / "odd"), feature__icebergCompatV1="supported", columnMapping__mode="name")
    one_sentence(lambda: by_number(delta, odd), "the Delta feature icebergCompatV1, which Hedgerow does not know")
    one_sentence(
        lambda: by_number(delta, path, options=hr.WriteOptions(parquet={"bloom": "x"})), "writer takes compression"
    )
    one_sentence(lambda: hr.table(delta, path), "no table that Hedgerow wrote")
    one_sentence(lambda: hr.apply(delta, now(delta, path), by_number(delta, path).layout), "name a place for")
    one_sentence(lambda: hr.table(delta, path).read(version=99), "version 99")


# --- while the rewrite runs -----------------------------------------------------------------------

MEANWHILE = {
    "DELETE": "DELETE FROM {t} WHERE number < 50",
    "UPDATE": "UPDATE {t} SET word = 'new' WHERE number BETWEEN 10 AND 20",
    "MERGE": "MERGE INTO {t} USING (SELECT 5 AS n) ON number = n WHEN MATCHED THEN UPDATE SET word = 'merged'",
    "OPTIMIZE": "OPTIMIZE {t}",
}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something happen after the rewrite has written its files and before it commits."""

    def plan(what: Callable[[], object]) -> None:
        from hedgerow.spark.storage.delta_rewrite import Rewrite

        commit = Rewrite.commit

        def late(self: Rewrite, *args: Any) -> int:
            monkeypatch.setattr(Rewrite, "commit", commit)
            thread = Thread(target=what)  # no part of our transaction
            thread.start()
            thread.join()
            return commit(self, *args)

        monkeypatch.setattr(Rewrite, "commit", late)

    return plan


@pytest.mark.parametrize(
    "kind", ["DELETE", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("UPDATE", "MERGE", "OPTIMIZE"))]
)
def test_a_conflict(
    delta: SparkSession, path: str, kind: str, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: delta.sql(MEANWHILE[kind].format(t=f"delta.`{path}`")).collect())
    with pytest.raises(Conflict) as caught:
        by_number(delta, path)
    assert str(caught.value) == f"{path} was not changed: meanwhile another {kind} changed it; try again"
    assert delta.sql(f"DESCRIBE HISTORY delta.`{path}`").count() == 2
    assert len(data_files(path)) <= 6, "what was written is deleted again"
    one_sentence(lambda: hr.table(delta, path), "no table that Hedgerow wrote")
    before = answer(now(delta, path))
    table = by_number(delta, path)
    assert answer(now(delta, path)) == before
    check(delta, table)


@pytest.mark.long
def test_a_conflict_that_is_tried_again(
    delta: SparkSession, path: str, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    meanwhile(lambda: delta.sql(f"DELETE FROM delta.`{path}` WHERE number < 50").collect())
    table = by_number(delta, path, options=hr.WriteOptions(retries=1))
    assert table.verify()["rows_compared"] == ROWS - 50
    assert check(delta, table) > FILES


# --- routed queries -------------------------------------------------------------------------------

ROUTED = [
    ("SELECT id FROM {t} WHERE number < 100", 1),
    (
        "SELECT count(*) FROM {t} a JOIN {t} b ON a.number = b.number + 1 WHERE a.number < 100 AND b.word LIKE '%9'",
        None,
    ),
    ("WITH x AS (SELECT * FROM {t} WHERE number < 300) SELECT a.id FROM x a, {t} b WHERE a.id = b.id", None),
    ("SELECT (SELECT max(number) FROM {t} WHERE number < 50), id FROM {t} WHERE number IN (5, 6)", 2),
    ("SELECT id FROM {t} VERSION AS OF 0 WHERE number < 100", None),
    ("SELECT a.id FROM {t} VERSION AS OF 0 a JOIN {t} b ON a.id = b.id WHERE b.number < 100", None),
]


@pytest.mark.parametrize("name", ["view", *(pytest.param(name, marks=pytest.mark.long) for name in ("path", "table"))])
def test_routed(delta: SparkSession, path: str, name: str) -> None:
    by_number(delta, path)
    delta.sql(f"DELETE FROM delta.`{path}` WHERE number % 10 = 3")
    delta.sql(f"CREATE TABLE routed_d USING delta LOCATION '{path}'")
    delta.sql("CREATE TEMP VIEW routed_v AS SELECT * FROM routed_d")
    names = {"path": f"delta.`{path}`", "table": "default.routed_d", "view": "routed_v"}
    try:
        for sql, scanned in ROUTED[: 2 if name == "view" else 6]:
            text = sql.format(t=names[name])
            found, opened = ask(hr.route(delta, text))
            assert found == answer(delta.sql(text)), text
            assert scanned is None or sum(s.files for s in opened) == scanned, text
    finally:
        delta.sql("DROP TABLE routed_d")
        delta.catalog.dropTempView("routed_v")


# --- other engines --------------------------------------------------------------------------------


@pytest.mark.long
def test_other_engines_see_a_normal_table(delta: SparkSession, tmp_path: Path) -> None:
    import duckdb
    import pyarrow.parquet as pq

    plain = [
        "id", "CAST(id AS INT) AS number", "concat('w', id % 50) AS word", "id / 7.0D AS ratio", "id % 2 = 0 AS even",
    ]  # fmt: skip
    rows = delta.range(ROWS).selectExpr(*plain)
    path = write(delta, str(tmp_path / "things"), rows)
    table = by_number(delta, path, ["number < 100", "word LIKE '%9'"])
    expected = sorted(map(tuple, rows.collect()))
    listed = [f"{path}/{name}" for name in table.files()]
    assert sorted(duckdb.sql(f"SELECT * FROM read_parquet({listed})").fetchall()) == expected
    found = [row for name in listed for row in pq.read_table(name).to_pylist()]
    assert sorted(tuple(row.values()) for row in found) == expected
    rust = pytest.importorskip("deltalake").DeltaTable(path)
    assert sorted(tuple(row.values()) for row in rust.to_pyarrow_table().to_pylist()) == expected
    assert rust.version() == 1 and len(rust.file_uris()) == FILES
