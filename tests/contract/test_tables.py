"""What every managed table promises (`tables/base`), run on both formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.spark.start.session import temporary_settings
from hedgerow.tables.base import LacksCapability, Table
from tests.support.answers import answer
from tests.support.things_table import COLUMNS, ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "delta")
BLOCKS = 8
CONDITIONS = [
    "number < 100",
    "number BETWEEN 500 AND 600",
    "word LIKE '%9'",
    "price > 90 OR number = 7",
    "number IS NULL",
]
WORKLOAD = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in CONDITIONS])
DESCRIBED = {
    "path",
    "table",
    "layout",
    "blocks",
    "rows",
    "rows_per_block",
    "files",
    "bytes",
    "unknown_files",
    "statistics",
}


def things(spark: SparkSession, start: int = 0, rows: int = ROWS) -> DataFrame:
    return spark.range(start, start + rows).selectExpr(*COLUMNS)


def learned(spark: SparkSession, source: str, learner: str = "range", **parameters: object) -> hr.Learned:
    named = {"columns": ["number"]} if learner == "range" else {}
    return hr.learn(spark, source, WORKLOAD, learner, ROWS // BLOCKS, ROWS, table="things", **named, **parameters)


def laid_out(spark: SparkSession, format_: str, folder: Path) -> Table:
    source = str(folder / "source")
    things(spark).repartition(3, "price").write.format(format_).save(source)
    to = str(folder / "table") if format_ == "parquet" else None
    return hr.apply(spark, source, learned(spark, source), to)


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Table:
    if request.param == "delta":
        request.getfixturevalue("delta")
    return laid_out(spark, request.param, tmp_path)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(LacksCapability) as error:
        call()
    sentence = str(error.value)
    assert "\n" not in sentence and len(sentence) < 300
    return sentence


def test_promises(spark: SparkSession, table: Table) -> None:
    """One test for the whole protocol: a table takes seconds to make."""
    everything = things(spark)
    assert table.name == "things" and table.layout.blocks >= BLOCKS // 2
    files = table.files()
    assert len(files) == len(table.known) and answer(table.read()) == answer(everything)
    opened = [table.files(c) for c in CONDITIONS]
    assert all(set(some) <= set(files) for some in opened) and min(map(len, opened)) < len(files)
    for condition in CONDITIONS:
        assert answer(table.read(condition)) == answer(everything.where(condition)), condition
    assert answer(table.read(CONDITIONS[0], ["word"])) == answer(everything.where(CONDITIONS[0]).select("word"))

    assert table.describe().keys() >= DESCRIBED and table.describe()["rows"] == ROWS
    assert table.verify()["rows"] == ROWS
    score = table.score(WORKLOAD)
    predicates = [
        q.predicate("things")
        for q in WORKLOAD.on("things").bind({"things": {"number": "bigint", "word": "string", "price": "double"}})
    ]
    assert 0 < score.rows_read < 1 and all(0 <= share <= 1 for share in table.rows_read(predicates))
    told = table.explained(predicates[0])
    assert sorted(name for group in told.groups for name in group.files) == sorted(files)
    assert table.rows_opened(told).count() == sum(group.rows or 0 for group in told.groups if group.opened)
    assert str(ROWS) in table._repr_html_() and "rows read" in score._repr_html_()
    assert table.written_under and not table.stale_joins()

    all_rows = f"SELECT * FROM {table.describe().get('format', 'parquet')}.`{table.path}`"
    cached = spark.sql(all_rows).cache()
    assert cached.count() == ROWS
    grown = table.append(things(spark, ROWS, 100))
    assert spark.sql(all_rows).count() == ROWS + 100, "the session still reads what it cached before the append"
    cached.unpersist()
    assert answer(grown.read()) == answer(things(spark, 0, ROWS + 100))
    assert grown.describe()["rows"] == ROWS + 100 and not grown.describe()["unknown_files"]
    assert grown.verify()["rows"] == ROWS + 100
    assert set(files) <= set(grown.files())
    done = grown.history()
    assert [o["operation"] for o in done] == ["append", "apply"]
    assert all(o["time"] and o["version"] is not None for o in done) and done[0]["version"] > done[1]["version"]


def test_an_append_of_nothing(spark: SparkSession, table: Table) -> None:
    """Neither a commit nor an entry of the history; a frame whose columns cannot be told apart is refused anyway."""
    history, files = table.history(), table.files()
    filtered = table.append(things(spark).where("number < 0"))
    emptied = filtered.append(things(spark).limit(0))
    assert emptied.history() == history and emptied.files() == files
    assert emptied.describe() == table.describe() and emptied.verify()["rows"] == ROWS
    twice = things(spark).selectExpr("*", "1 AS other")
    for rows in (twice.toDF(*things(spark).columns, "NUMBER"), twice.toDF(*things(spark).columns, "number").limit(0)):
        with pytest.raises(hr.HedgerowError, match=r"two columns number and (NUMBER|number), which") as error:
            table.append(rows)
        assert "\n" not in str(error.value)
    assert hr.table(spark, table.path).history() == history and answer(table.read()) == answer(things(spark))
    grown = hr.table(spark, table.path).append(things(spark, ROWS, 10))
    assert answer(grown.read()) == answer(things(spark, 0, ROWS + 10)) and grown.history()[0]["operation"] == "append"


@pytest.mark.long
def test_rollback(spark: SparkSession, table: Table) -> None:
    if table.describe().get("format") == "delta":
        back = table.rollback()
        assert answer(back.read()) == answer(things(spark)) and back.history()[0]["operation"] == "rollback"
    else:
        assert "rolled back" in refused(table.rollback)
        assert answer(hr.table(spark, table.path).read()) == answer(things(spark))


@pytest.mark.long
def test_two_that_relearn_at_once(spark: SparkSession, table: Table) -> None:
    other = hr.table(spark, table.path)
    table.relearn(NEW_WORKLOAD)
    with pytest.raises(hr.HedgerowError, match="changed meanwhile, so it is not relearned: try again"):
        other.relearn(WORKLOAD)
    now = hr.table(spark, table.path)
    assert [o["operation"] for o in now.history()] == ["relearn", "apply"]
    assert now.score(NEW_WORKLOAD).rows_read < 1 and now.verify()["rows"] == ROWS
    assert now.relearn(WORKLOAD).history()[0]["operation"] == "relearn"


@pytest.mark.long
def test_what_only_one_format_can_do(delta: SparkSession, tmp_path: Path) -> None:
    parquet, in_place = laid_out(delta, "parquet", tmp_path / "p"), laid_out(delta, "delta", tmp_path / "d")
    source = str(tmp_path / "p" / "source")
    with_overlap = learned(delta, source, "qdtree", overlap=True)
    assert with_overlap.layout.kind == "overlap"
    for sentence in (
        refused(lambda: hr.apply(delta, in_place.path, with_overlap)),
        refused(lambda: hr.apply(delta, source, learned(delta, source), in_place.path, replica="second")),
        refused(lambda: hr.apply(delta, source, learned(delta, source), str(tmp_path / "new"), where="number < 5")),
    ):
        assert sentence
    for table in (parquet, in_place):
        assert answer(hr.table(delta, table.path).read()) == answer(things(delta)) and len(table.history()) == 1


@pytest.mark.long
@pytest.mark.parametrize("format_", FORMATS)
def test_the_verbs_own_session_decides_how_values_are_written(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    """Spark and Delta ask the active session, which is another one here: it would cut off microseconds."""
    if format_ == "delta":
        request.getfixturevalue("delta")
    source, to = str(tmp_path / "source"), str(tmp_path / "table") if format_ == "parquet" else None
    columns = ["id AS number", "timestamp_micros(id * 1000003) AS moment", "IF(id % 2 = 0, 0D, -0D) AS zero"]
    spark.range(ROWS).selectExpr(*columns).write.format(format_).save(source)
    own = spark.newSession()
    workload = hr.Workload.from_sql(["SELECT * FROM t WHERE number < 100"])
    active = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    active.setActiveSession(spark._jsparkSession)
    with temporary_settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}):
        found = hr.learn(own, source, workload, "range", ROWS // BLOCKS, ROWS, table="t", columns=["number"])
        written = hr.apply(own, source, found, to)
        grown = written.append(own.read.format(format_).load(source).where("number < 10"))
    assert active.getActiveSession().get().equals(spark._jsparkSession)
    for name in grown.files():
        footer = pq.read_metadata(f"{written.path}/{name}")
        assert footer.schema.to_arrow_schema().field("moment").type.unit == "us"
        zero = footer.row_group(0).column(footer.schema.names.index("zero"))
        assert not zero.has_dictionary_page, "-0.0 and 0.0 would be told apart"


NEW = ["word LIKE '%3'", "number % 10 = 4", "number + price > 990"]  # each about some rows of every block of numbers
NEW_WORKLOAD = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in [*NEW, *NEW]])


@pytest.mark.long
def test_relearn(spark: SparkSession, table: Table) -> None:
    """Nothing of the table's files changes; the index knows the new conditions, of appended rows as well."""
    table = table.append(things(spark, ROWS, 100).where("word NOT LIKE '%3' AND number % 10 <> 4"))
    before, files = table.score(NEW_WORKLOAD).rows_read, table.files()
    relearned = table.relearn(NEW_WORKLOAD)
    assert relearned.files() == files and relearned.verify()["rows"] == table.verify()["rows"]
    assert relearned.score(NEW_WORKLOAD).rows_read < before
    everything = spark.read.format(table.describe().get("format", "parquet")).load(table.path)
    for condition in (*NEW, *CONDITIONS):
        assert answer(relearned.read(condition)) == answer(everything.where(condition)), condition
    grown = relearned.append(things(spark, ROWS + 100, 100).where("word NOT LIKE '%3' AND number % 10 <> 4"))
    added = set(grown.files()) - set(files)
    assert added and not added & set(grown.files(NEW[0])) and grown.verify()["rows"] > 0
    assert [o["operation"] for o in grown.history()] == ["append", "relearn", "append", "apply"]
    again = grown.relearn(WORKLOAD, statistics=0)
    assert answer(again.read(NEW[0])) == answer(grown.read(NEW[0])) and again.verify()["rows"] == grown.verify()["rows"]
