"""What is stored about a condition is not believed where the same words mean something else now."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import hedgerow as hr
from hedgerow.core.predicates.nodes import Opaque
from hedgerow.spark.optimizer.jvm_facts import steady
from hedgerow.spark.start.session import configured
from tests.support.answers import attached_to, opened

BY_THE_CLOCK = [
    "d = 'yesterday'", "d = DATE 'today'", "datediff(' Tomorrow', d) = 1",
    "CAST(s AS TIMESTAMP) < TIMESTAMP '2024-01-01 00:00:00'", "ts < '00:30:00'", "ts > TIMESTAMP 'T10:00'",
    "to_timestamp(s) > ts", "hour(s) = 3", "d = to_date(concat('to', 'day'))", "try_cast(s AS TIMESTAMP) IS NULL",
    "array_contains(CAST(array('now', s) AS ARRAY<TIMESTAMP>), ts)",
]  # fmt: skip
BY_THE_SESSION = ["s = current_path()", "s = current_database()", "ts < now()", "d < curdate()", "s = session_user()"]
BY_THE_ROW = [
    "datediff('2024-03-05', d) = 1", "CAST(s AS DATE) = DATE '2024-01-01'", "ts < TIMESTAMP '2024-01-01 10:00:00'",
    "hour(ts) = 3", "s LIKE '%today%'", "concat(s, 'now') = 'x now'", "ts > d", "date_format(ts, 'yyyy') = '2024'",
    "to_date(s, 'dd.MM.yyyy') = DATE '2024-01-01'", "to_timestamp(s, 'yyyy-MM-dd HH:mm:ss') > ts",
    "CAST(n AS TIMESTAMP) > ts", "coalesce(s, 'yesterday') = 'x'", "d BETWEEN '2024-01-01' AND '2024-02'",
    "nvl(n, 0) = 1",
]  # fmt: skip
COLUMNS = (
    "id",
    "id % 10 AS n",
    "date_add(DATE '2024-01-01', CAST(id DIV 500 AS INT)) AS d",
    "TIMESTAMP '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id) AS ts",
    "CAST(TIMESTAMP '2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, id) AS STRING) AS s",
)


def applied(spark: SparkSession, tmp_path: Path, columns: tuple[str, ...], *conditions: str) -> str:
    """A table of eight files by `id`, whose index describes these conditions."""
    source, place = str(tmp_path / "source"), str(tmp_path / "table")
    spark.range(4000).selectExpr(*columns).write.parquet(source)
    asked = hr.Workload.from_sql([f"SELECT id FROM t WHERE {c}" for c in (*conditions, "id = 3")])
    learned = hr.learn(spark, source, asked, "range", hr.LearnOptions(block_rows=500), columns=["id"], table="t")
    hr.apply(spark, source, learned, place)
    return place


def opened_of(spark: SparkSession, place: str, condition: str, kind: str = "parquet") -> int:
    return opened(spark.read.format(kind).load(place), condition)[0]


def test_what_depends_on_the_row_alone(spark: SparkSession) -> None:
    frame = spark.range(1).selectExpr(*COLUMNS)
    for text in (*BY_THE_CLOCK, *BY_THE_SESSION):
        assert steady(frame, [Opaque(text, ())]) == [], text
    for text in BY_THE_ROW:
        assert len(steady(frame, [Opaque(text, ())])) == 1, text


def test_outcomes_of_another_day_are_not_used(spark: SparkSession, tmp_path: Path) -> None:
    """They are noted by the day of the rewrite, and the query may be asked on any day."""
    late = "CAST(s AS TIMESTAMP) > TIMESTAMP '2030-01-01 00:00:00'"
    conditions = (late, "datediff('today', d) = -7", "d + 0 = 'today'", "hour(ts) = 30")
    with pytest.warns(hr.HedgerowWarning, match="nothing is learned from . expressions whose meaning may change"):
        place = applied(spark, tmp_path, COLUMNS, *conditions)
    assert [opened_of(spark, place, c) for c in conditions] == [8, 8, 8, 0]


def test_ilike_goes_by_the_session_s_letters(spark: SparkSession, tmp_path: Path) -> None:
    """An old Java does not know that Ꟁ is the upper case of ꟁ; Spark's own tables do."""
    columns = ("id", "concat(IF(id < 2000, 'x Ꟁ ', 'x y '), id % 50) AS s")
    condition = "s ILIKE '%ꟁ%'"
    with configured(spark, icu__caseMappings__enabled="false"):
        place = applied(spark, tmp_path, columns, condition)
        opened_of(spark, place, condition)
    with configured(spark, icu__caseMappings__enabled="true"):
        assert opened_of(spark, place, condition) >= 4


@pytest.mark.parametrize("turned", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_dot_in_a_name_beside_a_field(spark: SparkSession, tmp_path: Path, turned: bool) -> None:
    """In a footer both are called a.b."""
    columns = ("id", "concat('w', id % 50, ' elm') AS `a.b`", "struct(concat('w', id % 50, ' fir') AS b) AS a")
    place = applied(spark, tmp_path, columns[:: -1 if turned else 1], "`a.b` LIKE '%ash%'", "a.b LIKE '%oak%'")
    assert opened_of(spark, place, "`a.b` LIKE '%e%lm%'") == opened_of(spark, place, "a.b LIKE '%f%ir%'") == 8
    hr.table(spark, place).verify()


def test_delta_appends_under_another_grammar_are_refused(delta: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    rows = delta.range(1000).selectExpr("id", "concat('a_b/', id % 50) AS s")
    rows.write.format("delta").save(place)
    asked = hr.Workload.from_sql([r"SELECT id FROM t WHERE s LIKE '%\\_b/3%'", "SELECT id FROM t WHERE id = 3"])
    table = hr.apply(
        delta, place, hr.learn(delta, place, asked, "range", hr.LearnOptions(block_rows=300), columns=["id"], table="t")
    )
    with configured(delta, parser__escapedStringLiterals="true"):
        with pytest.raises(hr.HedgerowError, match="escapedStringLiterals"):
            table.append(rows)
        opened_of(delta, place, r"s LIKE '%\_b/3%'", "delta")
    opened_of(delta, place, r"s LIKE '%\\_b/3%'", "delta")


def test_a_delta_column_of_another_type_since(delta: SparkSession, tmp_path: Path) -> None:
    """A text's LIKE holds in every zone, a timestamp's does not."""
    place = str(tmp_path / "table")
    rows = delta.range(1000).selectExpr("id", "concat('w', id % 50) AS s")
    rows.write.format("delta").option("delta.columnMapping.mode", "name").save(place)
    asked = hr.Workload.from_sql(["SELECT id FROM t WHERE s LIKE '%2024-03-02%'", "SELECT id FROM t WHERE id = 3"])
    with configured(delta, session__timeZone="UTC"):
        hr.apply(
            delta,
            place,
            hr.learn(delta, place, asked, "range", hr.LearnOptions(block_rows=300), columns=["id"], table="t"),
        )
        delta.sql(f"ALTER TABLE delta.`{place}` DROP COLUMN s")
        delta.sql(f"ALTER TABLE delta.`{place}` ADD COLUMN s TIMESTAMP")
        evening = "TIMESTAMP '2024-03-01 20:00:00' + make_dt_interval(0, 0, 0, id % 3000) AS s"
        table = hr.table(delta, place).append(delta.range(1000, 2000).selectExpr("id", evening))
    assert str(table.newest.entry.schema["s"]) == "timestamp"
    with configured(delta, session__timeZone="Asia/Tokyo"):
        assert opened_of(delta, place, "s LIKE '%2024-03-02%'", "delta") > 0


def test_nothing_is_appended_without_an_error(spark: SparkSession, tmp_path: Path) -> None:
    place = applied(spark, tmp_path, COLUMNS, "n = 3")
    table = hr.table(spark, place).append(spark.range(0, 0).selectExpr(*COLUMNS))
    assert spark.read.parquet(place).count() == 4000
    table.verify()


def test_joined_rows_read_with_other_types(spark: SparkSession, tmp_path: Path) -> None:
    """The same files, of which a query reads a number as another kind of number: as text it is another text."""
    lines, orders, place = (str(tmp_path / name) for name in ("lines", "orders", "table"))
    spark.range(4000).selectExpr("id", "id % 200 AS okey").write.parquet(lines)
    spark.range(200).selectExpr("id AS key", "CAST(id % 40 AS INT) AS x").coalesce(1).write.parquet(orders)
    joined = "SELECT count(*) FROM l JOIN o ON l.okey = o.key WHERE CAST(o.x AS STRING) = '{}'"
    asked = hr.Workload.from_sql([joined.format(n) for n in (3, 5, 17, 39)])
    keys = [("l.okey", "o.key")]
    learned = hr.learn_tables(
        spark, {"l": lines, "o": orders}, asked, "mto", hr.LearnOptions(block_rows=300), keys=keys
    )
    hr.apply_tables(spark, {"l": lines}, learned, place, hr.WriteOptions(other_tables={"o": orders}))

    def read(kind: str) -> DataFrame:
        other = spark.read.schema(f"key BIGINT, x {kind}").parquet(orders)
        return spark.read.parquet(f"{place}/l").join(other, f.expr("okey = key"))

    few, all_ = opened(read("INT"), "CAST(x AS STRING) = '5'")
    assert few < all_ > 4
    assert opened(read("DOUBLE"), "CAST(x AS STRING) = '5.0'") == (all_, all_)


def test_a_file_that_is_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    """A replica has each row once."""
    columns = ("id", "id % 50 AS n")
    place = applied(spark, tmp_path, columns, "n = 3")
    asked = hr.Workload.from_sql(["SELECT id FROM t WHERE n = 3"])
    source = str(tmp_path / "source")
    learned = hr.learn(spark, source, asked, "range", hr.LearnOptions(block_rows=500), columns=["n"], table="t")
    hr.apply(spark, source, learned, place, replica="by_n")
    first, *others = sorted(str(file) for file in Path(place).glob("*.parquet"))
    opened(spark.read.parquet(first, *others, first), "n = 3")
    opened(spark.read.parquet(first, *[first] * len(others)), "n = 3")


def test_nothing_is_in_an_empty_list_not_even_null(spark: SparkSession, tmp_path: Path) -> None:
    place = applied(spark, tmp_path, ("id", "IF(id >= 2000, NULL, id % 7) AS n"), "n = 3")
    rule = "org.apache.spark.sql.catalyst.optimizer.OptimizeIn"
    with configured(spark, optimizer__excludedRules=rule):
        frame = spark.read.parquet(place)
        assert frame.where(~f.col("n").isin([])).count() == 4000
        with attached_to(spark):
            assert frame.where(~f.col("n").isin([])).count() == 4000
