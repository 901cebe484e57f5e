"""Every public name of a managed table (`tables/managed`), on both formats."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Predicate, col
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Bound, Stats, TermStats
from hedgerow.spark.compute.checksum import checksum
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Entry
from hedgerow.tables.formats import LacksCapability
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.part import write_layout, write_part
from hedgerow.tables.state import Kind, TableState, operation
from tests.support.answers import answer, answers, ask_all
from tests.support.lay_out import by_ranges
from tests.support.things_table import COLUMNS, ROWS

FORMATS = ("parquet", "delta")
BLOCKS = 8
CONDITIONS = [
    "number < 100", "number BETWEEN 500 AND 600", "word LIKE '%9'", "price > 90 OR number = 7", "number IS NULL",
]  # fmt: skip
WORKLOAD = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in CONDITIONS])
NEW = ["word LIKE '%3'", "number % 10 = 4", "number + price > 990"]  # each about some rows of every block of numbers
NEW_WORKLOAD = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in [*NEW, *NEW]])
DESCRIBED = {
    "path", "table", "layout", "blocks", "rows", "rows_per_block", "files", "bytes", "unknown_files", "statistics",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A table that was just written, and whether it is a Delta table."""

    spark: SparkSession
    table: ManagedTable
    is_delta: bool

    @property
    def sql(self) -> str:
        return f"SELECT * FROM {'delta' if self.is_delta else 'parquet'}.`{self.table.path}`"

    def predicate(self, condition: str) -> Predicate:
        """The condition as the index is asked."""
        (query,) = self.table.bound(hr.Workload.from_sql([f"SELECT * FROM things WHERE {condition}"]))
        return query.predicate("things")


def things(spark: SparkSession, start: int = 0, rows: int = ROWS) -> DataFrame:
    return spark.range(start, start + rows).selectExpr(*COLUMNS)


def learned(spark: SparkSession, source: str, learner: str = "range", **parameters: object) -> hr.Learned:
    named = {"columns": ["number"]} if learner == "range" else {}
    return hr.learn(
        spark,
        source,
        WORKLOAD,
        learner,
        hr.LearnOptions(block_rows=ROWS // BLOCKS),
        table="things",
        **named,
        **parameters,
    )


def laid_out(spark: SparkSession, format_: str, folder: Path) -> ManagedTable:
    source = str(folder / "source")
    things(spark).repartition(3, "price").write.format(format_).save(source)
    to = str(folder / "table") if format_ == "parquet" else None
    return hr.apply(spark, source, learned(spark, source), to)


@pytest.fixture(scope="module", params=FORMATS)
def written(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """For tests that only read."""
    if request.param == "delta":
        request.getfixturevalue("delta")
    return Case(spark, laid_out(spark, request.param, tmp_path_factory.mktemp("things")), request.param == "delta")


@pytest.fixture
def case(written: Case, tmp_path: Path) -> Case:
    """A copy, which a test may change."""
    shutil.copytree(written.table.path, tmp_path / "things")
    return Case(written.spark, hr.table(written.spark, str(tmp_path / "things")), written.is_delta)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(LacksCapability) as error:
        call()
    sentence = str(error.value)
    assert "\n" not in sentence and len(sentence) < 300
    return sentence


# --- every public name of a managed table, on both formats ------------------------------------------


def facts(c: Case) -> None:
    t = c.table
    assert t.name == "things" and t.path and t.spark is c.spark and t.written_under and not t.stale_joins()
    assert t.format.kind == t.state.kind == ("delta" if c.is_delta else "parquet")
    assert t.layout == t.newest.layout and t.layout.blocks >= BLOCKS // 2
    assert [part.id for part in t.parts] == [t.state.last_write] == [t.newest.id] and t.was_committed(t.newest.id)
    assert (
        t.written == t.known.sizes_by_name
        and not t.was_committed("another")
        and t.stale(t.newest) == set()
        and not t.joins.joined
    )
    assert {str(t.schema[name]) for name in ("number", "word")} == {"int", "string"}


def files_and_rows(c: Case) -> None:
    t, everything = c.table, things(c.spark)
    names = t.files()
    assert sorted(names) == sorted(t.known.names) == sorted(t.snapshot().files.names) and t.known.rows.sum() == ROWS
    assert answer(t.read()) == answer(everything)
    opened = [t.files(condition) for condition in CONDITIONS]
    assert all(set(some) <= set(names) for some in opened) and min(map(len, opened)) < len(names)
    assert ask_all([t.read(c) for c in CONDITIONS])[0] == answers(everything, CONDITIONS)
    assert answer(t.read(CONDITIONS[0], ["word"])) == answer(everything.where(CONDITIONS[0]).select("word"))


def other_engines(c: Case) -> None:
    """The files of a condition by their full paths, and the rows in them."""
    t, connection = c.table, duckdb.connect()
    for condition in CONDITIONS:
        paths = t.plain_files(condition)
        assert all(map(os.path.isfile, paths)) and len(paths) == len(t.files(condition))
        relation = t.duckdb(connection, condition)
        assert len(relation.filter(condition).fetchall()) == t.read(condition).count() <= len(relation.fetchall())
    connection.close()


def reasons(c: Case) -> None:
    t, p = c.table, c.predicate(CONDITIONS[0])
    (query,) = t.bound(hr.Workload.from_sql([f"SELECT * FROM things WHERE {CONDITIONS[0]}"]))
    told = t.explained(query)
    assert sorted(name for group in told.groups for name in group.files) == sorted(t.files())
    assert t.rows_opened(told).count() == sum(group.rows or 0 for group in told.groups if group.opened) < ROWS
    indexed = t.indexed()
    chosen = indexed.choose(p).opened.tolist()
    assert sorted(told.opened) == sorted(n for n, o in zip(indexed.files.names, chosen, strict=True) if o)


def measures(c: Case) -> None:
    t, queries = c.table, c.table.bound(WORKLOAD)
    score, shares = t.score(WORKLOAD), t.rows_read([query.predicate("things") for query in queries])
    assert len(queries) == len(CONDITIONS) and all(0 <= share <= 1 for share in shares)
    assert 0 < score.rows_read < 1 and score.rows_read == pytest.approx(sum(shares) / len(shares))
    assert t.describe().keys() >= DESCRIBED and t.describe()["rows"] == ROWS == dict(t.plain_facts())["rows"]
    assert str(ROWS) in t._repr_html_() and "rows read" in score._repr_html_()
    assert t.verify().keys() >= {"rows", "files", "files_with_statistics_checked"} and t.verify()["rows"] == ROWS
    (done,) = t.history()
    assert done["operation"] == "apply" and done["time"] and done["version"] is not None
    if c.is_delta:
        assert 0 < done["rows_read"] < 1 and t.describe()["layout_files_left"] == len(t.files())


def appends(c: Case) -> None:
    """One part more, described as the first one; both are asked at once."""
    before, files = c.table.state, c.table.files()
    cached = c.spark.sql(c.sql).cache()
    assert cached.count() == ROWS
    grown = c.table.append(things(c.spark, ROWS, 100))
    assert c.spark.sql(c.sql).count() == ROWS + 100, "the session still reads what it cached before the append"
    cached.unpersist()
    assert answer(grown.read()) == answer(things(c.spark, 0, ROWS + 100)) and set(files) <= set(grown.files())
    assert grown.describe()["rows"] == ROWS + 100 and not grown.describe()["unknown_files"]
    assert grown.state.parts[0] == before.parts[0] and len(grown.parts) == 2 and len(grown.indexed().parts) == 1
    assert grown.newest.entry.layout == grown.parts[0].id or grown.newest.entry.layout == grown.parts[0].entry.layout
    assert grown.verify()["rows"] == ROWS + 100
    done = grown.history()
    assert [o["operation"] for o in done] == ["append", "apply"] and done[0]["version"] > done[1]["version"]
    grown.finish()
    assert grown.catch_up() == [] and c.table.files() == grown.files()  # also of whoever opened it before


def appends_nothing(c: Case) -> None:
    """Neither a commit nor an entry of the history; a frame whose columns cannot be told apart is refused anyway."""
    table, history, files = c.table, c.table.history(), c.table.files()
    filtered = table.append(things(c.spark).where("number < 0"))
    emptied = filtered.append(things(c.spark).limit(0))
    assert emptied.history() == history and emptied.files() == files
    assert emptied.describe() == table.describe() and emptied.verify()["rows"] == ROWS
    names = things(c.spark).columns
    twice = things(c.spark).selectExpr("*", "1 AS other")
    for rows in (twice.toDF(*names, "NUMBER"), twice.toDF(*names, "number").limit(0)):
        with pytest.raises(hr.HedgerowError, match=r"two columns number and (NUMBER|number), which") as error:
            table.append(rows)
        assert "\n" not in str(error.value)
    assert hr.table(c.spark, table.path).history() == history and answer(table.read()) == answer(things(c.spark))
    grown = hr.table(c.spark, table.path).append(things(c.spark, ROWS, 10))
    assert answer(grown.read()) == answer(things(c.spark, 0, ROWS + 10)) and grown.history()[0]["operation"] == "append"


def relearns(c: Case) -> None:
    """Nothing of the table's files changes; the index knows the new conditions, of appended rows as well."""
    few = "word NOT LIKE '%3' AND number % 10 <> 4"
    table = c.table.append(things(c.spark, ROWS, 100).where(few))
    before, files = table.score(NEW_WORKLOAD).rows_read, table.files()
    relearned = table.relearn(NEW_WORKLOAD)
    assert relearned.files() == files and relearned.verify()["rows"] == table.verify()["rows"]
    assert relearned.score(NEW_WORKLOAD).rows_read < before
    for condition in (*NEW, *CONDITIONS):
        assert answer(relearned.read(condition)) == answer(c.spark.sql(c.sql).where(condition)), condition
    grown = relearned.append(things(c.spark, ROWS + 100, 100).where(few))
    added = set(grown.files()) - set(files)
    assert added and not added & set(grown.files(NEW[0])) and grown.verify()["rows"] > 0
    assert [o["operation"] for o in grown.history()] == ["append", "relearn", "append", "apply"]
    again = grown.relearn(WORKLOAD, statistics=0)
    assert answer(again.read(NEW[0])) == answer(grown.read(NEW[0])) and again.verify()["rows"] == grown.verify()["rows"]
    assert again.repair().files() == again.files(), "nothing is joined, so there is nothing to repair"


def takes_back(c: Case) -> None:
    if c.is_delta:
        back = c.table.rollback()
        assert answer(back.read()) == answer(things(c.spark)) and back.history()[0]["operation"] == "rollback"
        assert answer(back.read(version=0)) == answer(things(c.spark)) and back.files(version=0)
    else:
        assert "rolled back" in refused(c.table.rollback)
        assert "older versions" in refused(lambda: c.table.read(version=0))
        assert answer(hr.table(c.spark, c.table.path).read()) == answer(things(c.spark))


def lays_out(c: Case) -> None:
    """Files of others are always opened, until they get the layout."""
    things(c.spark, ROWS, 100).coalesce(1).write.format(c.table.format.kind).mode("append").save(c.table.path)
    (name,) = c.table.describe()["unknown_files"]
    (few,) = c.table.bound(hr.Workload.from_sql(["SELECT * FROM things WHERE number < 9"]))
    assert c.table.describe()["rows"] == ROWS + 100 and name in c.table.explained(few).opened
    assert 0 < c.table.score(WORKLOAD).rows_read < 1
    if c.is_delta:
        assert c.table.verify()["unknown_files"] == 1
        again = c.table.lay_out([name])
        assert not again.describe()["unknown_files"] and again.verify()["rows"] == ROWS + 100
    else:
        assert "no part" in refused(lambda: c.table.lay_out([name]))
        with pytest.raises(hr.HedgerowError, match="is not Hedgerow's"):
            c.table.verify()


def copies(c: Case) -> None:
    """A replica of a Parquet table; a Delta table has none."""
    plan = learned(c.spark, c.table.path)
    if c.is_delta:
        assert "replicas" in refused(lambda: hr.apply(c.spark, c.table.path, plan, c.table.path, replica="second"))
        assert "replicas" in refused(c.table.refresh_replicas) and c.table.replicas == {}
    else:
        table = hr.apply(c.spark, c.table.path, plan, c.table.path, replica="second")
        assert list(table.replicas) == ["second"] == list(table.refresh_replicas().replicas)


READS: dict[Callable[[Case], None], str] = {
    facts: "written name path spark format state layout newest parts was_committed written_under stale_joins stale joins schema",
    files_and_rows: "files known snapshot read",
    other_engines: "plain_files duckdb",
    reasons: "explained rows_opened indexed",
    measures: "bound score rows_read describe plain_facts _repr_html_ verify history",
}
WRITES: dict[Callable[[Case], None], str] = {
    appends: "append finish catch_up",
    appends_nothing: "",
    relearns: "relearn repair",
    takes_back: "rollback",
    lays_out: "lay_out",
    copies: "replicas refresh_replicas",
}


def test_every_public_name_is_exercised() -> None:
    """A method that only one format has been tried with begins to drift."""
    public = {name for name in dir(ManagedTable) if not name.startswith("_")} - {"open"}
    fields = {field.name for field in dataclasses.fields(ManagedTable)}
    exercised = " ".join((*READS.values(), *WRITES.values())).split()
    assert {*public, *fields, "_repr_html_"} == set(exercised) and len(exercised) == len(set(exercised))


@pytest.mark.parametrize("check", READS, ids=lambda check: check.__name__)
def test_reads(written: Case, check: Callable[[Case], None]) -> None:
    check(written)


LONG = (relearns, takes_back, copies)


@pytest.mark.parametrize(
    "check",
    [pytest.param(check, marks=[pytest.mark.long] * (check in LONG)) for check in WRITES],
    ids=lambda check: check.__name__,
)
def test_writes(case: Case, check: Callable[[Case], None]) -> None:
    check(case)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_file_without_rows(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, format_: Kind
) -> None:
    """Any statistics hold for it; those of other files are compared. One format had forgiven it, the other had not."""
    if format_ == "delta":
        request.getfixturevalue("delta")
    rows, path = pa.table({"k": pa.array(range(10), pa.int64())}), tmp_path / "t"
    path.mkdir()
    for name, some in (("part-00000-a", rows), ("part-00001-b", rows.slice(0, 0))):
        pq.write_table(some, path / f"{name}.parquet")
    if format_ == "delta":
        spark.sql(f"CONVERT TO DELTA parquet.`{path}`").collect()
        empty = {"path": "part-00001-b.parquet", "partitionValues": {}, "modificationTime": 0, "dataChange": True}
        empty["size"] = (path / "part-00001-b.parquet").stat().st_size
        commit = f"{1:020}.json"  # the conversion leaves out files without rows
        (path / "_delta_log" / commit).write_text(json.dumps({"add": empty}) + "\n")
    frame = spark.read.format(format_).load(str(path))
    fields = tuple(json.loads(frame.schema.json())["fields"])
    side, now = Folder(spark, f"{path}/_hedgerow"), settings(spark)
    entry = Entry("", "", "", fields, now, Writing(), (col("k"),), checksum(frame))
    entry = write_layout(side, entry, TreeLayout((), ()))
    names = sorted(p.name for p in path.glob("*.parquet"))
    sizes, counts = [(path / name).stat().st_size for name in names], np.array([10, 0], np.int64)
    known = KnownFiles(tuple(names), np.array(sizes, np.int64), counts, np.arange(2), {})
    for number, high in enumerate((9, 8)):
        bounds = [(Bound(0), Bound(high)), (Bound(3), Bound(4))]
        stats = Stats(counts, {"k": TermStats.build(Type("bigint"), bounds, [0, 0])}, {})
        written = write_part(side, replace(entry, id=""), BlockIndex(stats), known)
        state = TableState(format_, "t", (written,), (operation("apply", 0, written),))
        side.write(f"state-{number + 1}.json", state.to_bytes())
        table = hr.table(spark, str(path))
        if high == 9:
            assert table.verify()["files_with_statistics_checked"] == 2
        else:
            with pytest.raises(hr.HedgerowError, match=r"the statistics of part-00000-a\.parquet are wrong$"):
                table.verify()


@pytest.mark.long
def test_two_that_relearn_at_once(case: Case) -> None:
    spark, table, other = case.spark, case.table, hr.table(case.spark, case.table.path)
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
    active = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    active.setActiveSession(spark._jsparkSession)
    with temporary_settings(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}):
        found = by_ranges(own, source, "number", ROWS // BLOCKS, ["number < 100"])
        written = hr.apply(own, source, found, to)
        grown = written.append(own.read.format(format_).load(source).where("number < 10"))
    assert active.getActiveSession().get().equals(spark._jsparkSession)
    for name in grown.files():
        footer = pq.read_metadata(f"{written.path}/{name}")
        assert footer.schema.to_arrow_schema().field("moment").type.unit == "us"
        zero = footer.row_group(0).column(footer.schema.names.index("zero"))
        assert not zero.has_dictionary_page, "-0.0 and 0.0 would be told apart"
