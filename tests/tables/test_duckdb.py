"""DuckDB on the files that a condition opens: the rows and values that Spark reads, or a refusal in one sentence."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.spark.storage.paths import escape_glob
from hedgerow.tables.managed import ManagedTable
from tests.support.crossing_arms import CONDITIONS as CROSS
from tests.support.crossing_arms import arms
from tests.support.delta_tables import by_number, write
from tests.support.events_table import conditions, write_events
from tests.support.lay_out import asking, by_ranges
from tests.support.things_table import COLUMNS, ROWS, by_id, write_things

EVENTS = 4000
ZONE = "America/New_York"  # neither UTC nor this machine's
COMMON = [  # both engines read these in the same way
    "number < 100", "number BETWEEN 500 AND 600 AND kind = 'n'", "word LIKE '%9'", "price > 90 OR number = 7",
    "day = DATE '2026-01-05'", "wall < TIMESTAMP '2024-01-02 00:00:00'", "items IS NULL AND late", "number < 0",
]  # fmt: skip


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"SET TimeZone = '{ZONE}'")
    yield connection
    connection.close()


def plain(value: Any) -> Any:
    """The value in a form that is equal if it is the same to both engines."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else value
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.timezone.utc)
        case list() | tuple():
            return tuple(map(plain, value))
        case dict():
            return tuple((k, plain(v)) for k, v in value.items())
    return value


def sorted_rows(table: pa.Table) -> list[Any]:
    return sorted((plain(list(row.items())) for row in table.to_pylist()), key=repr)


def rows_of(relation: duckdb.DuckDBPyRelation) -> list[Any]:
    return sorted_rows(relation.to_arrow_table())


def rows_in_spark(frame: DataFrame) -> list[Any]:
    return sorted_rows(frame.toArrow())


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(hr.HedgerowError) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


# --- the same rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_random_conditions(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection, kind: str
) -> None:
    """The relation has every matching row once, with the values of every column, and leaves files out."""
    source, to = write_events(spark, str(tmp_path / "events"), EVENTS), str(tmp_path / "table")
    some, everything = conditions(5, 30), spark.read.parquet(source)
    if kind == "delta":
        request.getfixturevalue("delta")
        everything = everything.withColumnRenamed("a b", "ab")  # with a space it would need column mapping
        some = [condition.replace("`a b`", "ab") for condition in some]
        source, to = str(tmp_path / "in_place"), None
        everything.write.format("delta").save(source)
    everything.cache()  # not the table itself: it would be read from the cache
    learned = hr.learn(spark, source, asking(some, "events"), options=hr.LearnOptions(block_rows=300), table="events")
    table = hr.apply(spark, source, learned, to)
    assert isinstance(table, ManagedTable)
    values = {row[0][1]: row for row in rows_in_spark(everything)}
    assert {row[0][1]: row for row in rows_of(table.duckdb(con))} == values and len(values) == EVENTS
    skipped = 0
    for condition in some:
        opened = rows_of(table.duckdb(con, condition))
        ids = [row[0][1] for row in opened]
        assert len(ids) == len(set(ids)) and all(values[row[0][1]] == row for row in opened), condition
        wanted = {row[0] for row in everything.where(condition).select("id").collect()}
        assert wanted <= set(ids), condition
        assert len(table.plain_files(condition)) == len(table.files(condition)), condition
        skipped += len(table.files()) - len(table.files(condition))
    assert skipped > len(some)
    everything.unpersist()


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_conditions_that_both_engines_read(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection, kind: str
) -> None:
    if kind == "delta":
        table = by_number(request.getfixturevalue("delta"), write(spark, str(tmp_path / "things")), COMMON)
    else:
        table = by_id(spark, write_things(spark, str(tmp_path / "source")), str(tmp_path / "things"), COMMON)
    for condition in COMMON:
        relation = table.duckdb(con, condition)
        assert relation.columns == table.read().columns
        assert rows_of(relation.filter(condition)) == rows_in_spark(table.read(condition)), condition
    assert any(len(table.plain_files(condition)) < len(table.files()) for condition in COMMON)


def things(spark: SparkSession, folder: Path) -> ManagedTable:
    return by_id(spark, write_things(spark, str(folder / "source")), str(folder / "things"), ["number < 100"])


def test_no_file(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    table = things(spark, tmp_path)
    everything = table.duckdb(con)
    for condition in ("false", "number < -5", "number < 3 AND number > 1999"):
        assert table.plain_files(condition) == []
        nothing = table.duckdb(con, condition)
        assert nothing.columns == everything.columns and nothing.types == everything.types
        assert nothing.fetchall() == []


def test_a_cached_frame_hides_no_file(spark: SparkSession, tmp_path: Path) -> None:
    """The plan of a query over cached rows lists no file."""
    table = things(spark, tmp_path)
    expected = table.plain_files("number < 100")
    assert 0 < len(expected) < len(table.files())
    for cached in (spark.read.parquet(table.path), table.read(), table.read("number < 100")):
        cached.cache().count()
        assert set(table.plain_files("number < 100")) >= set(expected)
        cached.unpersist()
    frame = table.format.rows().selectExpr("input_file_name()")
    frame.cache().count()
    assert table.plain_files() and len(table.plain_files()) == len(table.files())
    frame.unpersist()


def test_files_of_other_tables_are_not_listed(
    spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection
) -> None:
    table, other = things(spark, tmp_path / "a"), things(spark, tmp_path / "b")
    condition = f"number < 500 AND id IN (SELECT id FROM parquet.`{other.path}` WHERE number < 10)"
    paths = table.plain_files(condition)
    assert paths and all(path.startswith(f"{table.path}/part-") for path in paths)
    assert set(paths) >= set(table.plain_files("number < 10"))
    assert table.plain_files(f"number < -5 AND {condition}") == []
    itself = f"id IN (SELECT id + 1000 FROM parquet.`{table.path}` WHERE number < 10)"
    wanted = [row[0] for row in table.read(itself).select("id").collect()]
    assert wanted and set(wanted) <= {row[0] for row in table.duckdb(con, itself).project("id").fetchall()}


def test_copies_of_rows_are_not_read(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Neither the copies of a layout with overlap, nor a replica, though Spark reads these."""
    rows, source = arms(300, 1), tmp_path / "arms"
    source.mkdir()
    pq.write_table(rows.append_column("z", pa.array(range(len(rows)))), source / "part-0.parquet")
    options = hr.LearnOptions(block_rows=300)
    learned = hr.learn(spark, str(source), asking(CROSS, "arms"), options=options, table="arms", overlap=True)
    table: Any = hr.apply(spark, str(source), learned, str(tmp_path / "table"))
    hidden = 0
    for again in range(2):
        for condition in CROSS:
            hidden += any("_hedgerow" in name for name in table.files(condition))
            assert not any("_hedgerow" in path for path in table.plain_files(condition))
            relation = table.duckdb(con, condition).filter(condition.replace(".0D", ".0"))  # 6.0D is Spark's 6.0
            assert rows_of(relation) == rows_in_spark(table.read(condition))
        if not again:
            assert hidden
            by_x = by_ranges(spark, table.path, "x", 100, CROSS, "arms")
            table, hidden = hr.apply(spark, table.path, by_x, table.path, replica="second"), 0
    assert hidden


def test_older_versions(delta: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    table = by_number(delta, write(delta, str(tmp_path / "things")))
    delta.range(5000, 5010).selectExpr(*COLUMNS).write.format("delta").mode("append").save(table.path)
    for version in range(3):
        found = rows_of(table.duckdb(con, "number < 50", version).filter("number < 50"))
        assert found == rows_in_spark(table.read("number < 50", version=version)) and len(found) == 50
    assert len(rows_of(table.duckdb(con))) == ROWS + 10
    assert "older versions" in refused(lambda: things(delta, tmp_path / "p").plain_files(version=0))


# --- columns that files lack, or have with another type ---------------------------------------------


def test_columns_that_were_added_and_widened(
    delta: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection
) -> None:
    path = str(tmp_path / "things")
    columns = "CAST(id AS INT) AS number", "named_struct('x', id) AS parts"
    delta.range(ROWS).selectExpr(*columns).write.format("delta").option("delta.enableTypeWidening", "true").save(path)
    table = by_number(delta, path, ["number < 100"])
    delta.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (more STRING, parts.y INT)")
    delta.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN number TYPE BIGINT")
    now = hr.table(delta, path)
    old = now.duckdb(con, "number < 100")
    assert old.columns == ["number", "parts", "more"] and str(old.types[0]) == "BIGINT"
    assert rows_of(old.filter("number < 100")) == rows_in_spark(now.read("number < 100"))
    new = delta.range(ROWS, ROWS + 50).selectExpr(
        "id AS number", "named_struct('x', id, 'y', 1) AS parts", "'m' AS more"
    )
    new.write.format("delta").mode("append").save(path)
    now = hr.table(delta, path)
    for condition in ("number < 100", "number >= 1990", "more = 'm'", "more IS NULL"):
        assert rows_of(now.duckdb(con, condition).filter(condition)) == rows_in_spark(now.read(condition)), condition
    assert rows_of(table.duckdb(con, "number < 100").filter("number < 100"))


def test_files_of_others(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    """They are always read; their columns may stand in another order, under names in other letters, or lack."""
    table = things(spark, tmp_path)
    others = spark.range(7000, 7003).selectExpr("'o' AS more", "CAST(id AS INT) AS NUMBER", "'w' AS word", "id")
    others.coalesce(1).write.mode("append").parquet(table.path)
    spark.catalog.refreshByPath(table.path)
    table = hr.table(spark, table.path)
    assert len(table.plain_files("number < 10")) == 2
    for condition in ("number < 10", "number >= 7000", "kind IS NULL"):
        assert rows_of(table.duckdb(con, condition).filter(condition)) == rows_in_spark(table.read(condition)), (
            condition
        )


@pytest.mark.parametrize("others_first", [True, False])
def test_timestamps_of_an_older_kind(
    spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection, others_first: bool
) -> None:
    """Parquet's INT96 does not say that it is in UTC: DuckDB takes it for local time."""
    table = things(spark, tmp_path)
    assert table.plain_files()
    rows = pq.read_table(table.plain_files("number < 10"), columns=["id", "number", "ts"])
    name = "a.parquet" if others_first else "z.parquet"
    pq.write_table(rows.slice(0, 3), f"{table.path}/{name}", use_deprecated_int96_timestamps=True)
    table = hr.table(spark, table.path)
    found = rows_of(table.duckdb(con, "number < 10").filter("number < 10"))
    assert found == rows_in_spark(table.read("number < 10")) and len(found) == 13


def test_texts_without_their_type(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    """Spark reads them as the texts that the table has; DuckDB would write `\\xC3` for the bytes of an ü."""
    table = things(spark, tmp_path)
    rows = pa.table({"id": [7000], "word": pa.array(["ü".encode()], pa.binary())})
    pq.write_table(rows, f"{table.path}/others.parquet")
    table = hr.table(spark, table.path)
    assert [row[0] for row in table.read("word = 'ü'").select("id").collect()] == [7000]
    assert "the column word as BLOB to DuckDB" in refused(lambda: table.duckdb(con, "word = 'ü'"))


# --- refusals ---------------------------------------------------------------------------------------


def test_deleted_rows(delta: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    table = by_number(delta, write(delta, str(tmp_path / "things"), enableDeletionVectors="true"))
    delta.sql(f"DELETE FROM delta.`{table.path}` WHERE number = 7")
    assert "deleted" in refused(lambda: table.plain_files("number < 10"))
    assert "deleted" in refused(lambda: table.duckdb(con))
    condition = "number BETWEEN 1500 AND 1600"  # in another file
    assert rows_of(table.duckdb(con, condition).filter(condition)) == rows_in_spark(table.read(condition))
    delta.sql(f"REORG TABLE delta.`{table.path}` APPLY (PURGE)").collect()
    now = hr.table(delta, table.path)
    assert rows_of(now.duckdb(con)) == rows_in_spark(now.read()) and len(rows_of(now.duckdb(con))) == ROWS - 1


def test_columns_with_other_names_in_the_files(delta: SparkSession, tmp_path: Path) -> None:
    mapped = by_number(delta, write(delta, str(tmp_path / "mapped"), columnMapping__mode="name"))
    assert "another name" in refused(mapped.plain_files)
    columns = "CAST(id AS INT) AS number", "named_struct('x', id) AS parts"
    for alter in ("number TO Count", "parts.x TO y"):
        path = str(tmp_path / alter)
        delta.range(ROWS).selectExpr(*columns).write.format("delta").save(path)
        table = by_number(delta, path, ["number < 100"])
        delta.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
        assert table.plain_files("number < 100")
        delta.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN {alter}")
        assert alter.split()[-1] in refused(hr.table(delta, path).plain_files)


def test_a_dropped_column_is_gone(delta: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    table = by_number(delta, write(delta, str(tmp_path / "things")))
    delta.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    delta.sql(f"ALTER TABLE delta.`{table.path}` DROP COLUMN price")
    now = hr.table(delta, table.path)
    assert rows_of(now.duckdb(con, "number < 9").filter("number < 9")) == rows_in_spark(now.read("number < 9"))


def test_partitions(delta: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "things")
    delta.range(ROWS).selectExpr(*COLUMNS).write.format("delta").partitionBy("kind").save(path)
    assert "partitioned by kind" in refused(by_number(delta, path, ["number < 100"]).plain_files)


def test_padded_texts(delta: SparkSession, tmp_path: Path) -> None:
    """Spark pads a CHAR(3) of files that another writer did not pad, and compares 'a' as 'a  '."""
    for i, kind in enumerate(("CHAR(3)", "STRUCT<x: CHAR(3), y: INT>")):
        path = str(tmp_path / str(i))
        delta.sql(f"CREATE TABLE delta.`{path}` (number BIGINT, word {kind}) USING delta")
        delta.sql(f"INSERT INTO delta.`{path}` SELECT id, NULL FROM range({ROWS})")
        table = by_number(delta, path, ["number < 100"])
        assert "the column word with spaces" in refused(table.plain_files)


def test_folders_of_others(spark: SparkSession, tmp_path: Path) -> None:
    table = things(spark, tmp_path)
    table.read("number < 10").write.partitionBy("kind").mode("append").parquet(table.path)
    now = hr.table(spark, table.path)
    assert "kind=" in refused(now.plain_files) and "kind=" in refused(lambda: now.plain_files("kind = 'zzz'"))


def test_types_and_names_that_duckdb_lacks(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection) -> None:
    source, to = str(tmp_path / "source"), str(tmp_path / "table")
    spark.range(100).selectExpr("id", "make_dt_interval(1, 2) AS pause").write.parquet(source)
    table: Any = hr.apply(spark, source, by_ranges(spark, source, "id", 20, ["id < 9"]), to)
    assert table.plain_files("id < 9") and "pause" in refused(lambda: table.duckdb(con))


# --- places and names -------------------------------------------------------------------------------

PLACES = [
    "a%20b", "x%2Fy %zz 100%", "p+q#r?s&t=u", "t[1]{2,3}*", "`ün ï' ;,\\n", "c:d; isDirectory=true", "day=1", "[!a]", "~",
]  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_odd_places(spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection, name: str) -> None:
    place, source = tmp_path / name / name, str(tmp_path / "source")
    spark.range(300).selectExpr("id", "id % 6 AS v").write.parquet(source)
    table: Any = hr.apply(spark, source, by_ranges(spark, source, "v", 50, ["v = 3"]), str(place))
    for decoy in ("t1{2,3}*", "t[1]2*", "a b", "xa", "a"):
        (tmp_path / decoy).mkdir(exist_ok=True)
    relation = table.duckdb(con, "v = 3")
    assert relation.columns == ["id", "v"]
    assert rows_of(relation.filter("v = 3")) == rows_in_spark(spark.read.parquet(source).where("v = 3"))
    assert all(Path(path).is_file() for path in table.plain_files())
    assert escape_glob(str(place)) == str(place) or len(table.plain_files("v = 3")) == 1


def test_relative_places(
    spark: SparkSession, tmp_path: Path, con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's folder is that in which it started; the paths are whole ones."""
    table = things(spark, tmp_path)
    here = spark._jvm.java.lang.System.getProperty("user.dir")  # type: ignore[union-attr]
    relative = hr.table(spark, str(Path(*[".."] * (len(Path(here).parts) - 1)) / table.path.lstrip("/")))
    assert all(Path(path).is_file() for path in relative.plain_files("number < 10"))
    assert rows_of(relative.duckdb(con)) == rows_of(table.duckdb(con))
