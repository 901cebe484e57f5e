"""Nineteen faults that a hostile hour found, each as a test of its class: lost values, wrong rows, raw errors.

Every door by which a query may come has to give what Spark gives without us:

    attach    spark.sql(...) in a session with the rule     |
    route     hr.route(spark, sql)                          |   ==   spark.sql(...), nothing attached
    read      table.read(where=...)                         |

A test about pruning first asks something harmless of the same table, by the same door, and sees files skipped: a table
that is always read whole would agree, too, and prove nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.start.session import configured
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.sealed import sealed, unsealed
from tests.support.answers import answer
from tests.support.laid_tables import COLUMNS, ROWS, STEP, Laid, by, learned, needs_delta, plainly, same

# --- tables -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def in_utc(spark: SparkSession) -> Iterator[None]:
    with configured(spark, session__timeZone="UTC"):
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


all_doors = pytest.mark.parametrize("door", ["attach", "route", "read"])
sql_doors = pytest.mark.parametrize("door", ["attach", "route"])


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
    with configured(laid.spark, **settings):
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
    with configured(spark, caseSensitive="true"):
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
    with configured(parquet_copy.spark, **settings):
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
