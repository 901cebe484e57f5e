"""Nineteen faults that a hostile hour found, each as a test of its class: lost values, wrong rows, raw errors.

Every door by which a query may come has to give what Spark gives without us:

    attach    spark.sql(...) in a session with the rule     |
    route     hr.route(spark, sql)                          |   ==   spark.sql(...), nothing attached
    read      table.read(where=...)                         |

A test about pruning first asks something harmless of the same table, by the same door, and sees files skipped: a table
that is always read whole would agree, too, and prove nothing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hedgerow as hr
from hedgerow.pipeline.learned import Learned
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.sealed import sealed, unsealed
from tests.support.answers import Answer, Scan, answer, ask
from tests.support.settings import set_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, FILES = 2000, 8
STEP = ROWS // FILES  # rows of a file: each holds a range of `id`
COLUMNS = (
    "id",
    "CAST(id AS INT) AS number",
    "CAST(id AS STRING) AS digits",
    "lpad(CAST(id AS STRING), 4, '0') AS padded",
    f"CAST(id DIV {STEP} AS DOUBLE) AS ratio",
    f"id >= {ROWS // 2} AS late",
    # One value in each file: 1 January 2024 in the first, 2 January in the second...
    f"date_add(DATE '2024-01-01', CAST(id DIV {STEP} AS INT)) AS day",
    f"TIMESTAMP_LTZ '2024-01-01 00:00:00 UTC' + make_interval(0, 0, 0, CAST(id DIV {STEP} AS INT)) AS midnight",
    # An hour for each row.
    "TIMESTAMP_LTZ '1970-01-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS hourly",
    "TIMESTAMP_LTZ '1939-06-01 00:00:00 UTC' + make_interval(0, 0, 0, 0, id) AS prewar",
    f"CAST(IF(id < {STEP}, -56, id DIV {STEP}) AS TINYINT) AS tiny",
    "concat(IF(id % 2 = 0, 'b', 'B'), CAST(id DIV 25 AS STRING)) AS word",
    f"IF(id < {ROWS // 2}, NULL, array(CAST(id AS INT), 1)) AS items",
    # In the first file only row 7 has a product that is not 0, and it is 0.00000001.
    f"CAST(CASE WHEN id = 7 THEN 0.0001 WHEN id < {STEP} THEN 0 ELSE id END AS DECIMAL(38, 10)) AS a",
    "CAST(IF(id = 7, 0.0001, 1) AS DECIMAL(38, 10)) AS b",
    "CAST(0 AS DECIMAL(38, 10)) AS zero",
    # The last row of the first file is 2^53, the first of the second 2^53 + 1: as doubles they are equal.
    f"9007199254740992 - {STEP - 1} + id AS big",
)
# What the index knows beside the plain columns.
LEARNED = (
    "number < 100", "digits LIKE '%1995%'", "padded < '3'", "ratio < 3", "late", "day < '2024-01-03'", "midnight < '2024-01-03'",
    "hourly < '1970-01-03'", "prewar < '1939-07-01'", "tiny < 3", "word < 'b2'", "big < 3", "size(items) = -1",
    "upper(word COLLATE UTF8_LCASE) = 'b1'", "a * b > a * zero", "CAST(day AS STRING) = '2024-01-02'",
)  # fmt: skip
# One file has such a row. No session can make this mean something else, and minima and maxima, which is what Delta
# and Parquet have themselves, do not answer it: where other files are skipped, it was the index.
HARMLESS = "digits LIKE '%1995%'"


@dataclass(frozen=True)
class Laid:
    """A table that was laid out, its name in SQL, and what was asked of it so far."""

    table: ManagedTable
    name: str
    plain: dict[tuple[str, ...], Answer] = field(default_factory=dict)
    skipping: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def spark(self) -> SparkSession:
        return self.table.spark

    def agrees(self, door: str, where: str, rows: int, **settings: str) -> None:
        """The rows of a condition by this door are the plain ones, of which there are `rows`."""
        self.agrees_on(door, f"SELECT id FROM {self.name} WHERE {where}", rows, where, **settings)

    def agrees_on(self, door: str, sql: str, rows: int, where: str | None = None, **settings: str) -> None:
        """`where`: what the door "read" asks in place of the SQL text."""
        with set_to(self.spark, **settings):
            self.skips(door, *settings.values())
            key = sql, *settings.values()
            if key not in self.plain:
                self.plain[key] = plainly(self.spark, sql)
            assert self.plain[key].rows == rows, "the question does not show the fault any more"
            found, _ = (
                ask(self.table.read(where=where, columns=["id"])) if door == "read" else by(self.spark, door, sql)
            )
            same(found, self.plain[key], sql)

    def skips(self, door: str, *settings: str) -> None:
        """By this door, and under the settings of now, the index of this table leaves files out."""
        if (door, *settings) in self.skipping:
            return
        sql = f"SELECT id FROM {self.name} WHERE {HARMLESS}"
        frame = self.table.read(where=HARMLESS, columns=["id"]) if door == "read" else None
        found, scans = by(self.spark, door, sql) if frame is None else ask(frame)
        assert found.rows == 1 and files(scans) == 1, "nothing is skipped: the test would be vacuous"
        self.skipping.add((door, *settings))


def plainly(spark: SparkSession, sql: str) -> Answer:
    """Without us."""
    with set_off(spark):
        return answer(spark.sql(sql))


@contextmanager
def set_off(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("hedgerow.enabled", "false")
    try:
        yield
    finally:
        spark.conf.unset("hedgerow.enabled")


def by(spark: SparkSession, door: str, sql: str) -> tuple[Answer, list[Scan]]:
    if door == "route":
        return ask(hr.route(spark, sql))
    hr.attach(spark)
    try:
        return ask(spark.sql(sql))
    finally:
        hr.detach(spark)


def same(found: Answer, expected: Answer, what: str) -> None:
    told = f"{found.rows} rows of {len(found.columns)} columns, plain {expected.rows} of {len(expected.columns)}"
    assert found == expected, f"{what}: {told}{', but other values' if found.rows == expected.rows else ''}"


def files(scans: list[Scan]) -> int:
    return sum(scan.files for scan in scans)


def learned(
    spark: SparkSession, source: str | DataFrame, conditions: tuple[str, ...] = LEARNED, block_rows: int = STEP
) -> Learned:
    """A file for each range of `id`."""
    workload = workload_of(conditions)
    return hr.learn(
        spark, source, workload, "range", hr.LearnOptions(block_rows=block_rows), table="things", columns=["id"]
    )


def workload_of(conditions: tuple[str, ...]) -> hr.Workload:
    return hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in conditions])


# --- tables -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def in_utc(spark: SparkSession) -> Iterator[None]:
    with set_to(spark, session__timeZone="UTC"):
        yield


@pytest.fixture(scope="module")
def source(spark: SparkSession, in_utc: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("plain") / "things.parquet")
    spark.range(ROWS).selectExpr(*COLUMNS).coalesce(1).write.parquet(path)
    return path


@pytest.fixture(scope="module")
def layout(spark: SparkSession, source: str) -> Learned:
    return learned(spark, source)


@pytest.fixture(scope="module")
def parquet(spark: SparkSession, source: str, layout: Learned, tmp_path_factory: pytest.TempPathFactory) -> Laid:
    table = hr.apply(spark, source, layout, str(tmp_path_factory.mktemp("ours") / "things"))
    return Laid(table, f"parquet.`{table.path}`")


@pytest.fixture(scope="module", params=["parquet", pytest.param("delta", marks=pytest.mark.long)])
def laid(
    spark: SparkSession,
    source: str,
    layout: Learned,
    parquet: Laid,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Laid:
    """The same rows as Parquet and as Delta, a file for each 250 of `id`."""
    if request.param == "parquet":
        return parquet
    needs_delta(spark)
    path = str(tmp_path_factory.mktemp("ours") / "things_d")
    spark.read.parquet(source).repartition(2, "digits").write.format("delta").save(path)
    return Laid(hr.apply(spark, path, layout), f"delta.`{path}`")


@pytest.fixture
def copy(spark: SparkSession, laid: Laid, tmp_path: Path) -> Laid:
    """The table again, to be spoiled."""
    return copied(laid, tmp_path)


@pytest.fixture
def parquet_copy(spark: SparkSession, parquet: Laid, tmp_path: Path) -> Laid:
    return copied(parquet, tmp_path)


def copied(laid: Laid, to: Path) -> Laid:
    path = str(to / "things")
    shutil.copytree(laid.table.path, path)
    return Laid(hr.table(laid.spark, path), laid.name.replace(laid.table.path, path))


def needs_delta(spark: SparkSession) -> None:
    from hedgerow.spark.start.delta_jars import NO_DELTA
    from hedgerow.spark.storage.delta_log import has_delta

    if not has_delta(spark):
        pytest.skip(NO_DELTA)


@pytest.fixture(scope="module")
def plain_layout(spark: SparkSession, in_utc: None) -> Learned:
    """Of any table with these two columns, of which the tests below write many."""
    return learned(
        spark, spark.range(80).selectExpr("id", "CAST(id AS INT) AS number"), ("number < 10",), block_rows=20
    )


def small(spark: SparkSession, path: str, kind: str, *columns: str, by: str = "") -> str:
    """80 rows with some more columns, as Parquet or Delta."""
    if kind == "delta":
        needs_delta(spark)
    rows = spark.range(80).selectExpr("id", "CAST(id AS INT) AS number", *columns).coalesce(1).write.format(kind)
    (rows.partitionBy(by) if by else rows).save(path)
    return path


def now(spark: SparkSession, path: str, kind: str) -> DataFrame:
    return spark.read.format(kind).load(path)


both_kinds = pytest.mark.parametrize("kind", ["parquet", "delta"])
all_doors = pytest.mark.parametrize("door", ["attach", "route", "read"])
sql_doors = pytest.mark.parametrize("door", ["attach", "route"])


# --- 1, 2: a rewrite loses nothing ------------------------------------------------------------------

# Names of columns that a rewrite adds for a while, in any letter case.
HELPERS = (
    "_hedgerow_hash", "_hedgerow_block", "_hedgerow_0", "_hedgerow_part_0", "_HEDGEROW_COPY", "_Hedgerow_Rows"
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind, change", [("parquet", str.lower), ("delta", str.upper)], ids=["parquet", "delta"])
def test_01_columns_called_like_helpers_keep_their_values(
    spark: SparkSession, tmp_path: Path, kind: str, change: Callable[[str], str]
) -> None:
    """A column of the user's is never taken for one that a rewrite adds for a while."""
    names = [change(name) for name in HELPERS]
    more = (f"id * {i + 2} AS {name}" for i, name in enumerate(names))
    path = small(spark, str(tmp_path / "things"), kind, "CAST(id AS STRING) AS digits", *more)
    expected = {name: 3160 * (i + 2) for i, name in enumerate(names)}
    # A condition that may fail on a row becomes a column of its own while rows get their blocks.
    asked = ("CAST(digits AS INT) < 40", "CAST(digits AS INT) > 60 AND number < 70")
    found = hr.learn(spark, path, workload_of(asked), "qdtree", hr.LearnOptions(block_rows=10), table="things")
    assert found.blocks > 1
    table = hr.apply(spark, path, found, path, overwrite=True) if kind == "parquet" else hr.apply(spark, path, found)
    assert (sums(now(spark, path, kind), names), sums(table.read(), names)) == (expected, expected)


def sums(frame: DataFrame, names: list[str]) -> dict[str, int]:
    """Of the columns that are still there."""
    return (
        frame.selectExpr(*(f"sum({name}) AS {name}" for name in names if name in frame.columns)).collect()[0].asDict()
    )


@pytest.mark.long
def test_01_columns_called_like_helpers_in_a_delta_table_with_partitions(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path
) -> None:
    names = ["_hedgerow_file", "_hedgerow_p0", "_hedgerow_b"]
    more = (f"id * 7 AS {name}" for name in names)
    path = small(spark, str(tmp_path / "things"), "delta", *more, "id % 2 AS part", by="part")
    hr.apply(spark, path, plain_layout)
    assert sums(now(spark, path, "delta"), names) == dict.fromkeys(names, 3160 * 7)


@pytest.mark.long
@both_kinds
def test_02_a_session_that_writes_milliseconds(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path, kind: str
) -> None:
    """The session says how Parquet files are to be written; neither a rewrite nor an append of ours changes a value."""
    exact = "TIMESTAMP_LTZ '2024-01-01 00:00:00.000001 UTC' + make_interval(0, 0, 0, 0, 0, 0, id * 0.000123) AS ts"
    path = small(spark, str(tmp_path / "things"), kind, exact)
    before = answer(now(spark, path, kind))
    more = spark.range(80, 120).selectExpr("id", "CAST(id AS INT) AS number", exact)
    with set_to(spark, parquet__outputTimestampType="TIMESTAMP_MILLIS"):
        table = hr.apply(spark, path, plain_layout, *([f"{path}_by_us"] if kind == "parquet" else []))
        table.append(more)
    after = now(spark, table.path, kind)
    kept = {
        "rewritten": answer(after.where("id < 80")) == before,
        "appended": answer(after.where("id >= 80")) == answer(more),
    }
    assert kept == {"rewritten": True, "appended": True}


# --- 3: a table that became another one -------------------------------------------------------------


@pytest.fixture(scope="module", params=["dropped and added", "renamed crosswise"])
def converted(
    spark: SparkSession, parquet: Laid, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[str, str, int]:
    """Laid out as Parquet, then made a Delta table, in which `number` is another column by now; a question about it."""
    needs_delta(spark)
    laid = copied(parquet, tmp_path_factory.mktemp("converted"))
    laid.skips("attach")
    name = f"delta.`{laid.table.path}`"
    spark.sql(f"CONVERT TO DELTA {laid.name}")
    by_name = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({by_name})")
    if request.param == "dropped and added":
        spark.sql(f"ALTER TABLE {name} DROP COLUMN number")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN number INT")
        return name, "number IS NULL", ROWS
    for old, new in (("id", "other"), ("big", "id"), ("other", "big")):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    return name, "big < 100", 100


@pytest.mark.long
@sql_doors
def test_03_columns_of_a_converted_table_that_became_others(
    spark: SparkSession, converted: tuple[str, str, int], door: str
) -> None:
    name, where, rows = converted
    sql = f"SELECT digits FROM {name} WHERE {where}"
    expected = plainly(spark, sql)
    assert expected.rows == rows
    same(by(spark, door, sql)[0], expected, sql)


# --- 4, 5, 6, 13, 14: other settings ----------------------------------------------------------------

# What the view computes, under which settings it was made, the question, and how many rows there are.
VIEWS: Mapping[str, tuple[str, dict[str, str], str, int]] = {
    "size of NULL": ("size(items)", {"ansi__enabled": "false"}, "x = -1", ROWS // 2),
    "decimals": ("a * b > a * zero", {"decimalOperations__allowPrecisionLoss": "false"}, f"x AND number < {STEP}", 1),
}


@sql_doors
@pytest.mark.parametrize("what", VIEWS)
def test_04_a_view_made_under_other_settings(laid: Laid, door: str, what: str) -> None:
    """The view's expressions keep the settings of its making, those of the asking session say nothing about them."""
    expression, settings, where, rows = VIEWS[what]
    with set_to(laid.spark, **settings):
        laid.spark.sql(f"CREATE OR REPLACE TEMP VIEW faults_v AS SELECT *, {expression} AS x FROM {laid.name}")
    try:
        laid.agrees_on(door, f"SELECT id FROM faults_v WHERE {where}", rows)
    finally:
        laid.spark.catalog.dropTempView("faults_v")


@all_doors
def test_05_decimals_under_another_rule_of_precision(laid: Laid, door: str) -> None:
    """Spark rounds 0.00000001 to 0 as long as it may lose precision; the index was written under that rule."""
    where = f"a * b > a * zero AND number < {STEP}"
    laid.agrees(door, where, 0)
    laid.agrees(door, where, 1, decimalOperations__allowPrecisionLoss="false")


@sql_doors
@pytest.mark.parametrize("how", ["a schema of the reader", "a table of the catalog"])
def test_06_a_column_that_differs_in_case(parquet: Laid, door: str, how: str) -> None:
    """Where case counts, NUMBER is not `number`: no file has it, so all its values are NULL."""
    spark, path, schema = parquet.spark, parquet.table.path, "id BIGINT, NUMBER INT, digits STRING"
    with set_to(spark, caseSensitive="true"):
        if how == "a table of the catalog":
            spark.sql(f"CREATE TABLE faults_c ({schema}) USING parquet LOCATION '{path}'")
        else:
            spark.read.schema(schema).parquet(path).createOrReplaceTempView("faults_c")
    try:
        parquet.agrees_on(door, "SELECT * FROM faults_c WHERE NUMBER IS NULL", ROWS, caseSensitive="true")
    finally:
        spark.sql("DROP TABLE faults_c" if how == "a table of the catalog" else "DROP VIEW faults_c")


@all_doors
def test_13_a_sum_of_literals_that_wraps(laid: Laid, door: str) -> None:
    """Outside ANSI mode 100Y + 100Y is -56."""
    laid.agrees(door, "tiny = 100Y + 100Y", STEP, ansi__enabled="false")


@sql_doors
def test_14_a_cte_in_a_cte_of_the_same_name(laid: Laid, door: str) -> None:
    """Under the legacy policy the outer `t` counts inside of `u`, too."""
    t = laid.name
    inner = f"WITH t AS (SELECT number FROM {t} WHERE number < {STEP}) SELECT * FROM t"
    ctes = f"WITH t AS (SELECT number FROM {t}), u AS ({inner})"
    sql = f"{ctes} SELECT * FROM u UNION ALL SELECT * FROM t WHERE number < 5"
    laid.agrees_on(door, sql, ROWS + 5, legacy__ctePrecedencePolicy="LEGACY")


# --- 7: branches of two types -----------------------------------------------------------------------

# {t} is the table. Spark brings both branches to one type, so a condition on the result is none on the column.
BRANCHES = {
    # '0005' as a number is 5
    "UNION ALL of string and int": ("SELECT padded AS x FROM {t} UNION ALL SELECT number FROM {t}", "x = '5'", 2),
    "UNION ALL of date and timestamp": ("SELECT day FROM {t} UNION ALL SELECT hourly FROM {t}", "CAST(day AS STRING) = '2024-01-03 00:00:00'", STEP),
    # 2^53 and 2^53 + 1 are one double
    "UNION ALL of bigint and double": ("SELECT big AS x FROM {t} UNION ALL SELECT 0.5D", "x = 9007199254740992", 2),
    "INTERSECT of bigint and double": (f"SELECT 9007199254740992D AS x INTERSECT SELECT big FROM {{t}} WHERE number >= {STEP}", "x = 9007199254740992", 1),
    "EXCEPT of bigint and double": (f"SELECT 9007199254740992D AS x EXCEPT SELECT big FROM {{t}} WHERE number >= {STEP}", "x = 9007199254740992", 0),
}  # fmt: skip


@sql_doors
@pytest.mark.parametrize("what", BRANCHES)
def test_07_set_operations_over_two_types(laid: Laid, door: str, what: str) -> None:
    query, where, rows = BRANCHES[what]
    laid.agrees_on(door, f"SELECT * FROM ({query.format(t=laid.name)}) WHERE {where}", rows)


# --- 8 to 12: conditions that a second reader reads differently --------------------------------------


@all_doors
@pytest.mark.parametrize("where", ["ratio NOT LIKE '5'", "late NOT LIKE 'TRUE'", "midnight NOT LIKE '2024-01-03'"])
def test_08_not_like_of_a_value_that_is_no_string(laid: Laid, door: str, where: str) -> None:
    """5.0, true and 2024-01-03 00:00:00 are the texts to which Spark turns these values."""
    laid.agrees(door, where, ROWS)


@all_doors
def test_09_a_format_of_dates(laid: Laid, door: str) -> None:
    """Day and month are swapped: it is the second of January."""
    laid.agrees(door, "day = to_date('2024-02-01', 'yyyy-dd-MM')", STEP)


@all_doors
def test_10_a_line_comment_that_ends_in_a_backslash(laid: Laid, door: str) -> None:
    """To Spark the next line is still comment."""
    laid.agrees(door, f"number >= 0 -- all \\\n AND number < {STEP}", ROWS)


@all_doors
def test_11_functions_over_a_collation(laid: Laid, door: str) -> None:
    """Letter case does not count in the comparison, for the collation of `word` is that of its upper case."""
    laid.agrees(door, "upper(word COLLATE UTF8_LCASE) = 'b1'", 25)


# The last instant of one file is the first of the next to who is an hour, or 20 minutes, off.
ZONES = {"WET": "hourly = TIMESTAMP '1970-02-01 06:00:00'", "Europe/Amsterdam": "prewar = '1939-06-11 11:00:00'"}


@all_doors
@pytest.mark.parametrize("zone", ZONES)
def test_12_zones_of_which_java_and_python_think_differently(laid: Laid, door: str, zone: str) -> None:
    """What Java says counts. Where this machine's Python says the same, there is nothing to see."""
    laid.agrees(door, ZONES[zone], 1, session__timeZone=zone)


# --- 15: other ways to read the files ---------------------------------------------------------------


@sql_doors
@pytest.mark.parametrize("how", ["an option of the reader", "an option in SQL"])
def test_15_a_view_that_looks_into_folders(parquet: Laid, parquet_copy: Laid, door: str, how: str) -> None:
    spark, path = parquet_copy.spark, parquet_copy.table.path
    (Path(path) / "more").mkdir()
    first = next(p for p in sorted(Path(path).glob("part-00000-*.parquet")))
    shutil.copy(first, Path(path) / "more" / "more.parquet")
    if how == "an option in SQL":
        options = f"(path '{path}', recursiveFileLookup 'true')"
        spark.sql(f"CREATE TEMP VIEW faults_r USING parquet OPTIONS {options}")
    else:
        spark.read.option("recursiveFileLookup", "true").parquet(path).createOrReplaceTempView("faults_r")
    try:
        sql = "SELECT id FROM faults_r WHERE number < 20"
        parquet.skips(door)
        expected = plainly(spark, sql)
        assert expected.rows == 40
        same(by(spark, door, sql)[0], expected, sql)
    finally:
        spark.catalog.dropTempView("faults_r")


# A file of others: its name, its columns, settings, the question, and how many rows and columns there are.
OTHERS: Mapping[str, tuple[str, tuple[str, ...], dict[str, str], str, int, int]] = {
    "a schema that sorts first": ("aaa.parquet", ("id", "CAST(id AS INT) AS number", "'x' AS digits", "'x' AS extra"), {}, "number < 20", 30, 4),
    "a wider type that sorts first": ("aaa.parquet", ("id", "id + 5000000000 AS number", "'x' AS digits"), {}, "number >= 1990", 20, 3),
    "schemas merged by setting": ("zzz.parquet", ("id", "CAST(id AS INT) AS number", "'x' AS extra"), {"parquet__mergeSchema": "true"}, "number < 20", 30, len(COLUMNS) + 1),
}  # fmt: skip


@sql_doors
@pytest.mark.parametrize("what", OTHERS)
def test_15_files_of_another_schema(parquet: Laid, parquet_copy: Laid, tmp_path: Path, door: str, what: str) -> None:
    """Spark takes the schema of the first file, or merges all: rows, columns and their types are as it says."""
    name, columns, settings, where, rows, width = OTHERS[what]
    parquet.skips(door)
    parquet_copy.spark.range(10).selectExpr(*columns).coalesce(1).write.parquet(str(tmp_path / "others"))
    shutil.copy(next((tmp_path / "others").glob("*.parquet")), Path(parquet_copy.table.path) / name)
    sql = f"SELECT * FROM {parquet_copy.name} WHERE {where}"
    with set_to(parquet_copy.spark, **settings):
        expected = plainly(parquet_copy.spark, sql)
        assert (expected.rows, len(expected.columns)) == (rows, width)
        same(by(parquet_copy.spark, door, sql)[0], expected, sql)


# --- 16, and a damaged index: what we cannot read ---------------------------------------------------


def a_list_of_another_name(table: ManagedTable) -> None:
    (Path(table.path) / "_hedgerow" / "state-old.json").write_text("{}")


def a_list_that_lacks_a_part(table: ManagedTable) -> None:
    """A state whose parts have no `settings`."""
    newest = max((Path(table.path) / "_hedgerow").glob("state-*.json"), key=lambda p: int(p.stem.rpartition("-")[2]))
    found = unsealed(newest.read_bytes(), "the state")
    for part in found["parts"]:
        part.pop("settings")
    put(newest, sealed(found))


def a_damaged_index(table: ManagedTable) -> None:
    put(next((Path(table.path) / "_hedgerow").glob("index-*")), b"no longer what it was")


def a_damaged_list_of_files(table: ManagedTable) -> None:
    put(next((Path(table.path) / "_hedgerow").glob("files-*")), b"no longer what it was")


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of what was there


SPOILED = [a_list_of_another_name, a_list_that_lacks_a_part, a_damaged_index, a_damaged_list_of_files]


@pytest.mark.long
@all_doors
@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_16_what_cannot_be_read_skips_nothing(
    laid: Laid, copy: Laid, door: str, spoil: Callable[[ManagedTable], None]
) -> None:
    """A query by SQL is answered as if there were no index. Who asks for our table by name may get a sentence."""
    spark, where = copy.spark, "number < 20"
    laid.skips(door)
    spoil(copy.table)
    sql = f"SELECT id FROM {copy.name} WHERE {where}"
    expected = plainly(spark, sql)
    assert expected.rows == 20
    if door != "read":
        same(by(spark, door, sql)[0], expected, sql)
        return
    try:
        found = answer(hr.table(spark, copy.table.path).read(where=where, columns=["id"]))
    except hr.HedgerowError as error:
        assert "\n" not in str(error)
    else:
        same(found, expected, where)


# --- a view that is older than what was appended ----------------------------------------------------


@pytest.mark.long
@sql_doors
@pytest.mark.parametrize("how", ["a query", "a frame", "a table of the catalog"])
def test_a_view_made_before_an_append(parquet: Laid, parquet_copy: Laid, door: str, how: str) -> None:
    """Spark lists the files of a frame, and of a table of the catalog, once: both are stale until refreshed, by any
    door; a view of a query is not. What is right is what Spark shows, and after a refresh that is all rows."""
    spark, t, sql = parquet_copy.spark, parquet_copy.name, "SELECT id FROM faults_a WHERE number < 20"
    if how == "a query":
        spark.sql(f"CREATE TEMP VIEW faults_a AS SELECT * FROM {t}")
    elif how == "a frame":
        spark.read.parquet(parquet_copy.table.path).createOrReplaceTempView("faults_a")
    else:
        spark.sql(f"CREATE TABLE faults_a USING parquet LOCATION '{parquet_copy.table.path}'")
    try:
        assert plainly(spark, sql).rows == 20
        parquet.skips(door)
        table = hr.table(spark, parquet_copy.table.path)
        table.append(spark.read.parquet(table.path).where("id < 5"))
        expected = plainly(spark, sql)
        assert expected.rows == 25 or how != "a query"
        same(by(spark, door, sql)[0], expected, sql)
        spark.sql("REFRESH TABLE faults_a")
        expected = plainly(spark, sql)
        assert expected.rows == 25
        same(by(spark, door, sql)[0], expected, sql)
    finally:
        spark.sql("DROP TABLE faults_a" if how == "a table of the catalog" else "DROP VIEW faults_a")


# --- 17, 18, 19: what could not be done -------------------------------------------------------------

# A third of the texts is no UTF-8: the first byte says that another one follows, which does not.
NO_UTF8 = "IF(id % 3 = 0, CAST(X'C328' AS STRING), CAST(id AS STRING)) AS word"
OF_WORDS = ("word = '5'", "word > '7'", "word LIKE '%4%'", "word = CAST(X'C328' AS STRING)")


@pytest.mark.long
@both_kinds
def test_17_strings_that_are_not_utf8(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = small(spark, str(tmp_path / "things"), kind, NO_UTF8, "concat('w', id) AS other")
    skipping = "other LIKE '%w79%'"
    found = learned(
        spark, path, ("number < 10", "word = '5'", "word > '7'", "word LIKE '%4%'", skipping), block_rows=20
    )
    table = hr.apply(spark, path, found, *([f"{path}_by_us"] if kind == "parquet" else []))
    name = f"{kind}.`{table.path}`"
    same(answer(now(spark, table.path, kind)), answer(now(spark, path, kind)), "all rows")
    expected = {where: plainly(spark, f"SELECT id FROM {name} WHERE {where}") for where in (*OF_WORDS, skipping)}
    for door in ("attach", "route", "read"):
        for where, rows in expected.items():
            own = table.read(where=where, columns=["id"]) if door == "read" else None
            answered, scans = by(spark, door, f"SELECT id FROM {name} WHERE {where}") if own is None else ask(own)
            same(answered, rows, f"{door}: {where}")
            assert where != skipping or files(scans) < len(table.known), "nothing is skipped"


@pytest.mark.long
@pytest.mark.parametrize("kind, last", [("parquet", "a[1]{b,c}"), ("parquet", "a[b{c"), ("delta", "a[1]{b,c}")])
def test_18_brackets_in_a_path(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path, kind: str, last: str
) -> None:
    path, plain = str(tmp_path / last), small(spark, str(tmp_path / "plain"), "parquet")
    if kind == "delta":
        table = hr.apply(spark, small(spark, path, kind), plain_layout)
    else:
        table = hr.apply(spark, plain, plain_layout, path)
    found, scans = ask(table.read(where="number < 10"))
    assert files(scans) == 1, "nothing is skipped"
    same(found, answer(spark.read.parquet(plain).where("number < 10")), "read")
    table.append(spark.read.parquet(plain).where("id >= 75"))
    expected = answer(
        spark.read.parquet(plain).where("number >= 75").selectExpr("*", "explode(array(1, 2))").drop("col")
    )
    same(answer(hr.table(spark, path).read(where="number >= 75")), expected, "after an append")
    name = path if kind == "delta" else re.sub(r"([\[\]{}])", r"\\\1", path)  # as Spark itself wants it
    for door in ("attach", "route"):
        same(by(spark, door, f"SELECT * FROM {kind}.`{name}` WHERE number >= 75")[0], expected, door)


VARIANT = "parse_json(concat('{\"a\":', id, '}'))"
VARIANTS = f"{VARIANT} AS v", f"named_struct('w', {VARIANT}) AS s", f"array({VARIANT}, NULL) AS l"


@pytest.mark.long
@both_kinds
def test_19_variant_columns(spark: SparkSession, plain_layout: Learned, tmp_path: Path, kind: str) -> None:
    """By itself, in a struct and in a list; Spark cannot hash it, so the proof of equal rows needs another way."""
    path, texts = small(spark, str(tmp_path / "things"), kind, *VARIANTS), "to_json(struct(*)) AS row"
    before = answer(now(spark, path, kind).selectExpr(texts))
    table = hr.apply(spark, path, plain_layout, *([f"{path}_by_us"] if kind == "parquet" else []))
    same(answer(now(spark, table.path, kind).selectExpr(texts)), before, "all rows")
    assert table.verify()["rows"] == 80
    for door in ("attach", "route"):
        found, scans = by(spark, door, f"SELECT id FROM {kind}.`{table.path}` WHERE number < 10")
        assert found.rows == 10 and files(scans) == 1
    for v in ("v", "s.w", "l[0]"):
        where = f"variant_get({v}, '$.a', 'int') >= 75 OR number < 5"
        sql = f"SELECT id FROM {kind}.`{table.path}` WHERE {where}"
        expected = plainly(spark, sql)
        assert expected.rows == 10
        same(answer(table.read(where=where, columns=["id"])), expected, f"read: {where}")
        for door in ("attach", "route"):
            same(by(spark, door, sql)[0], expected, f"{door}: {where}")


@pytest.mark.long
@pytest.mark.parametrize("kind, name", [("parquet", "_metadata"), ("delta", "_METADATA")])
def test_19_a_column_called_metadata(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path, kind: str, name: str
) -> None:
    """It hides Spark's own, from which we know the file of a row."""
    path = small(spark, str(tmp_path / "things"), kind, f"id * 3 AS {name}")
    before = answer(now(spark, path, kind))
    table = hr.apply(spark, path, plain_layout, *([f"{path}_by_us"] if kind == "parquet" else []))
    same(answer(now(spark, table.path, kind)), before, "all values are as they were")
    same(answer(table.read(where="number < 20")), answer(now(spark, table.path, kind).where("number < 20")), "read")
    assert 0 < len(table.files(where="number < 20")) < len(table.files())
