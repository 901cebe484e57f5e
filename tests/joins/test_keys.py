"""Keys of many types: what joined rows tell holds only for the key that the index knows, under its type and name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.foreign_keys import find_keys
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.source import open_source
from tests.support.answers import attached_to

# The value of a key by its number; several numbers of some types have equal keys, so each type has its own numbers.
KEYS = {
    "STRING": "concat(if(n % 2 = 0, 'k', 'K'), n DIV 2)",
    "INT": "n * 256 + if(n < 40, 0, 1)",
    "DECIMAL(10, 2)": "n / 4",
    "DOUBLE": "CASE n WHEN 0 THEN -0.0D WHEN 1 THEN CAST('NaN' AS DOUBLE) ELSE n / 4D END",
    "TIMESTAMP": "timestamp_seconds(n * 86400)",
}
# The types with which a reader may see a key, under which more keys are equal than under its own.
COARSER = {"STRING": ("STRING COLLATE UTF8_LCASE", "STRING COLLATE UNICODE_CI"), "INT": ("TINYINT",)}


QUERY = "SELECT count(*), sum(id), sum(worth) FROM facts f JOIN parts p ON f.part = p.part WHERE p.worth {}"
ASKED = [QUERY.format(text) for text in ("= 45", "= 7", "BETWEEN 10 AND 12", "> 70", "< 2")]
SENSITIVE = {"spark.sql.caseSensitive": "true"}


def write(spark: SparkSession, folder: Path, kind: str) -> str:
    """Write `facts` and `parts` in layouts, joined by a key of this type; every part has another worth."""
    key = f"CAST({KEYS[kind]} AS {kind}) AS part"
    facts = spark.range(600).selectExpr("CAST(id * 37 % 90 AS INT) AS n", "CAST(id AS INT) AS id")
    parts = spark.range(80).selectExpr("CAST(id AS INT) AS n", "CAST(id AS INT) AS worth")
    facts.selectExpr("id", key).write.parquet(str(folder / "facts"))
    parts.selectExpr("worth", key).write.parquet(str(folder / "parts"))
    source = {name: str(folder / name) for name in ("facts", "parts")}
    asked = hr.Workload.from_sql([QUERY.format(f"BETWEEN {n} AND {n + 9}") for n in range(0, 80, 5)])
    learned = hr.learn_tables(
        spark, source, asked, "mto", hr.LearnOptions(block_rows=50), keys=[("facts.part", "parts.part")]
    )
    hr.apply_tables(spark, source, learned, str(folder / "out"))
    return str(folder / "out")


def create(spark: SparkSession, place: str, kind: str) -> None:
    """Make tables of the catalog that see the key with this type."""
    for name, more in (("facts", "id INT"), ("parts", "worth INT")):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name} (part {kind}, {more}) USING parquet LOCATION '{place}/{name}'")


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("facts", "parts"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def compare(spark: SparkSession, *queries: str) -> int:
    """The files that the queries skip; fails if an answer differs from a plain session's."""
    skipped = 0
    for sql in queries:
        plain = spark.sql(sql).collect()
        with attached_to(spark):
            assert spark.sql(sql).collect() == plain, sql
            skipped += sum(scan.files - scan.files_opened for scan in hr.last_query(spark) if scan.table == "facts")
    return skipped


@pytest.mark.long
@pytest.mark.parametrize("kind", KEYS)
def test_keys_seen_with_other_types(spark: SparkSession, tmp_path: Path, kind: str, tables: None) -> None:
    place = write(spark, tmp_path, kind)
    for seen in (kind, *COARSER.get(kind, ())):
        create(spark, place, seen)
        assert compare(spark, *ASKED) > 0 or seen != kind


@pytest.mark.long
def test_a_column_whose_name_differs_in_case(spark: SparkSession, tmp_path: Path, tables: None) -> None:
    with temporary_settings(spark, SENSITIVE):
        create(spark, write(spark, tmp_path, "INT"), "INT")
        assert compare(spark, *ASKED) > 0
        spark.sql("ALTER TABLE facts ADD COLUMN PART INT DEFAULT 1792")  # the seventh part's key, in every row
        compare(spark, *ASKED)  # such names are refused, so all files are opened
        compare(spark, *(sql.replace("f.part", "f.PART") for sql in ASKED))


def test_a_key_of_two_types_is_named(spark: SparkSession, tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("visits", "users")}
    spark.range(100).selectExpr("CAST(id % 50 AS INT) AS user", "id AS at").write.parquet(places["visits"])
    spark.range(50).selectExpr("id AS user", "id % 5 AS plan").write.parquet(places["users"])
    asked = hr.Workload.from_sql("SELECT * FROM visits v JOIN users u ON v.user = u.user WHERE u.plan = 3 AND v.at > 7")
    sources = {name: open_source(spark, place, name) for name, place in places.items()}
    bound = asked.bind({name: source.schema for name, source in sources.items()})
    with pytest.warns(hr.HedgerowWarning, match="1 key cannot be followed: .*joins int to bigint: cast one of them"):
        assert find_keys(sources, bound) == ()
