"""Each partition of a Delta table gets a layout of its own; several are learned and written at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.errors import FormatError, HedgerowError, HedgerowWarning, LayoutError
from hedgerow.pipeline.learned_partitions import files_of
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.delta_log import delta_log
from hedgerow.spark.storage.paths import plain_path
from tests.support.answers import answer, attached_to, without_skipping
from tests.support.delta_tables import now
from tests.support.lay_out import asking, by_ranges

ROWS = 4000
COLUMNS = ("id", "id % 10 AS k", "(id * 7919) % 1000 AS v", "IF(id < 3000, id DIV 1000 + 7, NULL) AS era")
ASKED = [f"era = 7 AND k = {k}" for k in range(8)] + [f"era = 8 AND v < {v}" for v in range(50, 400, 50)]
ASKED += [f"v BETWEEN {v} AND {v + 40}" for v in range(0, 900, 90)]
OPTIONS = hr.LearnOptions(block_rows=150)


@pytest.fixture
def sales(delta: SparkSession, tmp_path: Path) -> str:
    place = str(tmp_path / "sales")
    delta.range(ROWS).selectExpr(*COLUMNS).repartition(2).write.format("delta").partitionBy("era").save(place)
    return place


def learned(spark: SparkSession, place: str, **options: object) -> hr.LearnedPartitions:
    return hr.learn_partitions(spark, place, asking(ASKED, "sales"), "qdtree", OPTIONS, **options)  # type: ignore[arg-type]


def versions(spark: SparkSession, place: str) -> int:
    return spark.sql(f"DESCRIBE HISTORY delta.`{place}`").count()


def check_answers(spark: SparkSession, place: str) -> None:
    spark.read.format("delta").load(place).createOrReplaceTempView("sales")
    for condition in (*ASKED, "era IS NULL AND k = 3", "id IN (5, 1500, 3999)"):
        sql = f"SELECT * FROM sales WHERE {condition} ORDER BY id"
        with without_skipping(spark):
            expected = spark.sql(sql).collect()
        assert spark.sql(sql).collect() == expected, condition


def test_each_partition(delta: SparkSession, sales: str, tmp_path: Path) -> None:
    with pytest.warns(HedgerowWarning, match="little is to be gained in 4 of 4 partitions") as warned:
        layouts = learned(delta, sales, at_once=3)
    assert len(warned) == 1
    assert list(layouts) == ["era = 7", "era = 8", "era = 9", "era IS NULL"]
    assert layouts["era = 7"].layout != layouts["era = 8"].layout
    layouts.save(tmp_path / "layouts.json")
    assert {where: one.layout for where, one in hr.LearnedPartitions.load(tmp_path / "layouts.json").items()} == {
        where: one.layout for where, one in layouts.items()
    }
    before = versions(delta, sales)
    with temporary_settings(delta, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        table = hr.apply_partitions(delta, sales, layouts, at_once=3)
        assert {part.entry.settings["spark.sql.session.timeZone"] for part in table.parts} == {"Asia/Tokyo"}
    assert len({part.id for part in table.parts}) == len(layouts)
    assert {part.layout for part in table.parts} == {one.layout for one in layouts.values()}
    table.verify()
    with attached_to(delta):
        check_answers(delta, sales)
        delta.sql("SELECT * FROM sales WHERE era = 7 AND k = 3").collect()
        (scan,) = hr.last_query(delta)
        assert scan.files_opened < sum(part.known.rows.size for part in table.parts) / 4
    written = versions(delta, sales)
    assert written >= before + len(layouts)
    hr.apply_partitions(delta, sales, layouts)
    assert versions(delta, sales) == written  # all are in their layouts already


def test_a_rollback_takes_back_all_partitions(delta: SparkSession, sales: str) -> None:
    """And rows that came between two rewrites stay."""
    files = set(delta_log(delta, sales).snapshot().files.names)
    two = hr.LearnedPartitions({where: by_ranges(delta, sales, "id", 400, ASKED) for where in ("era = 7", "era = 8")})
    hr.apply_partitions(delta, sales, two)
    after_two = set(delta_log(delta, sales).snapshot().files.names)
    delta.sql(f"INSERT INTO delta.`{sales}` SELECT -id, k, v, era FROM delta.`{sales}` WHERE id < 50")
    expected = answer(delta.read.format("delta").load(sales))
    others = hr.LearnedPartitions({w: by_ranges(delta, sales, "v", 300, ASKED) for w in ("era = 9", "era IS NULL")})
    table = hr.apply_partitions(delta, sales, others, hr.WriteOptions(wave_bytes="1B"))
    assert len({done.get("batch") for done in table.history() if done["operation"] == "apply"}) == 2
    table = table.rollback()
    assert answer(table.read()) == expected
    assert set(table.snapshot().files.names) >= after_two
    table = table.rollback()
    assert answer(table.read()) == expected
    assert set(table.snapshot().files.names) >= files
    with pytest.raises(HedgerowError, match="has no rewrite of Hedgerow's to take back"):
        table.rollback()


def test_an_era_of_partitions(delta: SparkSession, sales: str) -> None:
    layouts = learned(delta, sales, partitions=["era < 9", "era IS NULL"])
    table = hr.apply_partitions(delta, sales, layouts)
    opened = {where: table.snapshot().names_where(where) for where in ("era < 9", "era = 9")}
    known = {name for part in table.parts for name in part.known.names}
    assert known.issuperset(opened["era < 9"]) and known.isdisjoint(opened["era = 9"])
    with attached_to(delta):
        check_answers(delta, sales)


ODD = {
    "text": r"""element_at(array("it's", 'a "b"', 'c\\\\d', '100%', 'x=y/z', ' ', 'NULL', NULL), CAST(id % 8 + 1 AS INT))""",
    "really?": "id % 2 = 0",
    "price": "CAST(id % 5 AS DECIMAL(10, 3)) / 4",
    "at": "timestamp_micros(1793000000000000 + id % 6 * 1234567)",
    "day": "date_add(DATE '1582-10-01', CAST(id % 9 AS INT) * 4)",
    "ratio": "element_at(array(0.1D, 1e300D, -1e-300D, double('NaN'), double('-Infinity')), CAST(id % 5 + 1 AS INT))",
    "tiny": "CAST(id % 3 - 1 AS TINYINT)",
    "bytes": "CAST(CASE id % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b c' END AS BINARY)",
}


@pytest.mark.parametrize("column", ODD)
def test_odd_partitions(delta: SparkSession, tmp_path: Path, column: str) -> None:
    """Each partition has a condition of its own, and all of them have all files."""
    mapped = column == "text"
    place, name = str(tmp_path / "t"), f"`{'of day, ' if mapped else ''}{column}`"
    properties = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if mapped else ""
    delta.sql(
        f"CREATE TABLE delta.`{place}` USING delta PARTITIONED BY ({name}) {properties} "
        f"AS SELECT id, {ODD[column]} AS {name} FROM range(0, 60, 1, 1)"
    )
    snapshot = delta_log(delta, place).snapshot()
    files = files_of(snapshot, snapshot.partitions())
    rows = now(delta, place)
    assert len(files) == rows.select(name).distinct().count() and all(len(own) == 1 for own in files.values())
    assert sorted(name for own in files.values() for name in own) == sorted(snapshot.files.names)
    for where, (own,) in files.items():
        assert [plain_path(path) for path in rows.where(where).inputFiles()] == [plain_path(snapshot.full_path(own))], (
            where
        )


@pytest.mark.parametrize(
    ("partitions", "message"),
    [
        (["era < 9", "era = 8"], "share a partition"),
        (["era = 77"], "no partition of .* has era = 77"),
        (["k = 3"], "picks whole partitions, only by era"),
        (["era = '"], "picks whole partitions"),
    ],
)
def test_refused_conditions(delta: SparkSession, sales: str, partitions: list[str], message: str) -> None:
    with pytest.raises(HedgerowError, match=message):
        learned(delta, sales, partitions=partitions)


def test_refused_tables(delta: SparkSession, tmp_path: Path) -> None:
    rows, plain, whole = (
        delta.range(100).selectExpr(*COLUMNS),
        str(tmp_path / "sales"),
        str(tmp_path / "whole" / "sales"),
    )
    rows.write.parquet(plain)
    rows.write.format("delta").save(whole)
    with pytest.raises(HedgerowError, match=r"only a Delta table has partitions"):
        learned(delta, plain)
    with pytest.raises(HedgerowError, match="has no partitions"):
        learned(delta, whole)
    layouts = hr.LearnedPartitions({"era = 7": hr.learn(delta, plain, asking(ASKED, "sales"))})
    with pytest.raises(HedgerowError, match="only a Delta table is rewritten in place"):
        hr.apply_partitions(delta, plain, layouts)
    with pytest.raises(LayoutError, match="write them with apply_partitions"):
        hr.apply(delta, whole, layouts)  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="write it with apply"):
        hr.apply_partitions(delta, whole, layouts["era = 7"])  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"read them with LearnedPartitions.load"):
        hr.Learned.from_json(layouts.to_json())


def test_one_partition_fails(delta: SparkSession, sales: str) -> None:
    """The others are committed; the same call goes on with the one that failed."""
    layouts = learned(delta, sales)
    before = versions(delta, sales)
    (broken,) = Path(sales).glob("era=8/part-00000-*.parquet")
    shutil.move(broken, broken.with_suffix(".gone"))
    with pytest.raises(HedgerowError, match=r"1 partition of 4 failed, .* goes on with those that are left: era = 8:"):
        hr.apply_partitions(delta, sales, layouts, at_once=4)
    committed = versions(delta, sales) - before
    shutil.move(broken.with_suffix(".gone"), broken)
    hr.apply_partitions(delta, sales, layouts)
    assert versions(delta, sales) == before + committed + 1
    with attached_to(delta):
        check_answers(delta, sales)
