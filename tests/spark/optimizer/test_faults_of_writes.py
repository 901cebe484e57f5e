"""Faults that a hostile hour found in what rewrites and appends write: lost values, raw errors. See `test_faults`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.start.session import configured
from tests.support.answers import answer, ask
from tests.support.laid_tables import by, files, learned, needs_delta, plainly, same, workload_of

both_kinds = pytest.mark.parametrize("kind", ["parquet", "delta"])
pytestmark = pytest.mark.long


@pytest.fixture(scope="module", autouse=True)
def in_utc(spark: SparkSession) -> Iterator[None]:
    with configured(spark, session__timeZone="UTC"):
        yield


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


# --- 1, 2: a rewrite loses nothing ------------------------------------------------------------------

# Names of columns that a rewrite adds for a while, in any letter case.
HELPERS = (
    "_hedgerow_hash", "_hedgerow_block", "_hedgerow_0", "_hedgerow_part_0", "_HEDGEROW_COPY", "_Hedgerow_Rows"
)  # fmt: skip


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


def test_01_columns_called_like_helpers_in_a_delta_table_with_partitions(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path
) -> None:
    names = ["_hedgerow_file", "_hedgerow_p0", "_hedgerow_b"]
    more = (f"id * 7 AS {name}" for name in names)
    path = small(spark, str(tmp_path / "things"), "delta", *more, "id % 2 AS part", by="part")
    hr.apply(spark, path, plain_layout)
    assert sums(now(spark, path, "delta"), names) == dict.fromkeys(names, 3160 * 7)


@both_kinds
def test_02_a_session_that_writes_milliseconds(
    spark: SparkSession, plain_layout: Learned, tmp_path: Path, kind: str
) -> None:
    """The session says how Parquet files are to be written; neither a rewrite nor an append of ours changes a value."""
    exact = "TIMESTAMP_LTZ '2024-01-01 00:00:00.000001 UTC' + make_interval(0, 0, 0, 0, 0, 0, id * 0.000123) AS ts"
    path = small(spark, str(tmp_path / "things"), kind, exact)
    before = answer(now(spark, path, kind))
    more = spark.range(80, 120).selectExpr("id", "CAST(id AS INT) AS number", exact)
    with configured(spark, parquet__outputTimestampType="TIMESTAMP_MILLIS"):
        table = hr.apply(spark, path, plain_layout, *([f"{path}_by_us"] if kind == "parquet" else []))
        table.append(more)
    after = now(spark, table.path, kind)
    kept = {
        "rewritten": answer(after.where("id < 80")) == before,
        "appended": answer(after.where("id >= 80")) == answer(more),
    }
    assert kept == {"rewritten": True, "appended": True}


# --- 17, 18, 19: what could not be done -------------------------------------------------------------

# A third of the texts is no UTF-8: the first byte says that another one follows, which does not.
NO_UTF8 = "IF(id % 3 = 0, CAST(X'C328' AS STRING), CAST(id AS STRING)) AS word"
OF_WORDS = ("word = '5'", "word > '7'", "word LIKE '%4%'", "word = CAST(X'C328' AS STRING)")


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
