"""What a text means is Spark's to say: where we might read it otherwise than Spark does, no row may be lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import answer, answers, ask_all
from tests.support.checked_table import World, named
from tests.support.things_table import COLUMNS, ROWS, by_id, write_things

# Conditions that were learned from, so that the index knows what they are in each file, and questions about them.
LEARNED = [
    "number > 5", "price * 2 > 150.5", "word LIKE '%49'", "word RLIKE '^w4'", "length(word) = 3", "late = early", "NOT late",
    "items IS NULL", "items[0] > 1500", "day LIKE '%-03-%'", "number DIV 250 = 3", "try_cast(word AS INT) > 45",
    "(number, length(word)) IN ((4, 1), (701, 3))", "late OR word = 'w1'", "concat(kind, word) = 'nw1'", "year(day) = 2026",
    "day LIKE ANY ('2024%', '2025%')", "to_char(day, 'dd-MM-yyyy') LIKE '%-03-2025'", "trunc(ts, 'Q') IS NULL",
    "log10(id + 1) = 3", "(late AND early) = false", "late = (early OR late)", "late = (late AND early)",
]  # fmt: skip
ASKED = [
    *LEARNED, "kind LIKE 'n'", "price * 2 > 195", "word LIKE '%9'", "number DIV 250 IN (2, 3)", "late", "not (late = early)",
    # What sqlglot writes for these is something else: NOT (... LIKE ANY ...) and CAST(day AS STRING); LOG(10, 1000),
    # which is 2.9999999999999996; 'QUARTER', which Spark knows as it does not know 'Q'; and without its brackets
    # (late AND early) = FALSE is late AND (early = FALSE).
    "day NOT LIKE ANY ('2024%', '2025%')", "NOT (day LIKE ANY ('2024%', '2025%'))", "to_char(day, 'yyyy') LIKE '%2025%'",
    "log10(id + 1) >= 3", "trunc(ts, 'Q') IS NOT NULL", "(late OR early) = true", "(early AND late) <=> late",
]  # fmt: skip


@pytest.fixture(scope="module")
def things(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    table = by_id(spark, source, str(tmp_path_factory.mktemp("ours") / "things"), LEARNED)
    with named(spark, table, source) as world:
        yield world


def test_conditions_learned_from(things: World) -> None:
    things.check_reads(ASKED)
    known = [c for c in ASKED if len(things.table.files(where=c)) < len(things.table.known)]
    assert len(known) > 10


TEXTS = [
    "SELECT id FROM ours_c WHERE id < 20",
    # A condition on a recursive CTE's result is none on its first step.
    "WITH RECURSIVE n AS (SELECT id FROM ours_c WHERE id = 1999 UNION ALL SELECT e.id FROM ours_c e JOIN n ON e.id = n.id - 400) SELECT * FROM n WHERE id < 900",
    # |> WHERE after |> LIMIT is no WHERE before it.
    "FROM ours_c |> ORDER BY id DESC |> LIMIT 900 |> WHERE id < 1500 |> SELECT id, word",
    # A CTE may be used where we do not see it; the use that we see must not decide what is read for both.
    "WITH x AS (SELECT id FROM ours_c) SELECT id FROM x WHERE id < 9 UNION ALL SELECT id FROM IDENTIFIER('x')",
    "WITH x AS (SELECT id FROM ours_c) SELECT id FROM x WHERE id < 9 UNION ALL SELECT id FROM (TABLE x)",
    pytest.param("WITH x AS (SELECT id FROM ours_c) SELECT id FROM x WHERE id < 9 UNION ALL SELECT * FROM ids(TABLE(x))", marks=pytest.mark.long),
    "WITH x AS (SELECT id FROM ours_c) SELECT id FROM x WHERE id < 9 UNION ALL SELECT id FROM (FROM x SELECT id)",
    # Spark puts in a setting's value before it parses.
    "SELECT id FROM ours_c WHERE word = '${tests.word}'",
    "SELECT id FROM ours_c WHERE word LIKE '${hiveconf:tests.word}%'",
    # The catalog may know the table with its columns in another order.
    "SELECT * FROM ours_o WHERE id < 9",
    "SELECT a FROM (SELECT * FROM ours_o WHERE id < 9) AS t(a, b, c, d, e, f, g, h, i, j, k, l)",
    "SELECT count(*) FILTER (WHERE id < 9) FROM ours_c WHERE id < 500",
    # To Spark these have no condition: WHERE is another name of the table, with other names of its columns.
    "SELECT count(*) FROM (SELECT late FROM ours_c) WHERE (late)",
    "SELECT count(*) FROM (SELECT late, id FROM ours_c) where (id, late)",
    "SELECT count(*) FROM (SELECT late FROM ours_c) WHERE ((late))",
]  # fmt: skip


@pytest.mark.parametrize("sql", TEXTS)
def test_texts(things: World, sql: str) -> None:
    from pyspark.sql.functions import udtf

    class Ids:
        def eval(self, row: Row) -> Iterator[tuple[int]]:
            yield (row["id"],)

    spark = things.spark
    spark.udtf.register("ids", udtf(Ids, returnType="id BIGINT"))
    with temporary_settings(spark, {"tests.word": "w17"}):
        things.check(sql, None)


@pytest.fixture(autouse=True, scope="module")
def in_another_order(things: World) -> Iterator[None]:
    """The table as the catalog may know it too: `kind` first, and all the others."""
    spark = things.spark
    fields = spark.read.parquet(things.source).schema.fields
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in sorted(fields, key=lambda f: f.name != "kind"))
    for name, path in (("ours_o", things.table.path), ("plain_o", things.source)):
        spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet LOCATION '{path}'")
    yield
    for name in ("ours_o", "plain_o"):
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.long
def test_paths_that_differ_in_case_only(spark: SparkSession, tmp_path: Path) -> None:
    ours: list[str] = []
    for name, columns in (("Things", COLUMNS), ("things", ("id", "CAST(9 AS INT) AS number"))):
        source = write_things(spark, str(tmp_path / f"{name}-source"), columns)
        ours.append(by_id(spark, source, str(tmp_path / name), ["id < 5"]).path)
    sql = "SELECT number FROM parquet.`{}` WHERE id < 20 UNION ALL SELECT number FROM parquet.`{}` WHERE id < 20"
    plain = sql.format(*(f"{path}-source" for path in ours))
    assert answer(hr.route(spark, sql.format(*ours))) == answer(spark.sql(plain))


# --- strings that do not compare as strings do -----------------------------------------------------


def table_of(spark: SparkSession, tmp: Path, name: str, type_: str, learned: list[str]) -> ManagedTable:
    """Its column `code` is of this type: A0, A1, ... in the first file, B0, B1, ... in the second."""
    letter = f"substr('ABCDEFGH', 1 + CAST(id * 8 / {ROWS} AS INT), 1)"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, code {type_}) USING parquet LOCATION '{tmp}/{name}'")
    spark.sql(f"INSERT INTO {name} SELECT id, concat({letter}, id % 10) FROM range({ROWS})")
    return by_id(spark, name, str(tmp / f"{name}-ours"), learned)


@pytest.fixture(scope="module")
def padded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedTable]:
    yield table_of(spark, tmp_path_factory.mktemp("chars"), "padded", "CHAR(6)", ["code = 'B1'", "code LIKE '%1'"])
    spark.sql("DROP TABLE padded")


# Spark pads both sides of a comparison with a CHAR column, the column's values are read with blanks behind them.
CHARS = ["code LIKE 'B%'", "code > 'B1'", "code = 'B1    '", "code = 'B1'", "code IN ('A1', 'B2')", "trim(code) = 'B1'"]


def test_chars(spark: SparkSession, padded: ManagedTable) -> None:
    assert ask_all([padded.read(where=c) for c in CHARS])[0] == answers(spark.table("padded"), CHARS)


@pytest.fixture(scope="module")
def collated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedTable]:
    learned = ["code = 'B1'", "substring(code, 1, 1) = 'B'", "upper(code) = 'B1'"]
    yield table_of(spark, tmp_path_factory.mktemp("collated"), "collated", "STRING COLLATE UTF8_LCASE", learned)
    spark.sql("DROP TABLE collated")


# Functions of such a column have its collation, too.
COLLATIONS = ["id < 20", "code = 'b1'", "code LIKE 'b%'", "substring(code, 1, 1) = 'b'", "upper(code) = 'b1'"]


def test_collations(spark: SparkSession, collated: ManagedTable) -> None:
    assert ask_all([collated.read(where=c) for c in COLLATIONS])[0] == answers(spark.table("collated"), COLLATIONS)
