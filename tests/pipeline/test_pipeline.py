"""Verbs from a Parquet directory on: sizes of blocks, estimates, routes after writes, files beside a table, refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow import route
from hedgerow.core.errors import HedgerowError, HedgerowWarning
from hedgerow.pipeline import estimate_seconds
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.open import open_table
from hedgerow.pipeline.score import score
from hedgerow.spark.storage.folder import Folder
from hedgerow.sql.workload import Workload
from hedgerow.tables.managed import ManagedTable
from tests.support.answers import attached_to
from tests.support.events_table import conditions, write_events

ROWS, BLOCK_ROWS = 6_000, 500
LEARNERS = [
    "qdtree",
    *(pytest.param(name, marks=pytest.mark.long) for name in ("range", "zorder", "hilbert", "zorder_learned")),
]


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_events(spark, str(tmp_path_factory.mktemp("source") / "events.parquet"), ROWS)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 40)])


@pytest.fixture(scope="module", params=LEARNERS)
def managed(
    spark: SparkSession,
    source: str,
    workload: Workload,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> ManagedTable:
    learned = learn(spark, source, workload, request.param, LearnOptions(block_rows=BLOCK_ROWS, sample_rows=5_000))
    assert learned.layout.blocks > 5
    return apply(spark, source, learned, str(tmp_path_factory.mktemp(request.param) / "events"))


def test_blocks_are_as_large_as_asked(managed: ManagedTable) -> None:
    blocks = managed.describe()["rows_per_block"]
    assert managed.known.rows.sum() == ROWS
    assert blocks["least"] >= 0.5 * BLOCK_ROWS


def test_queries_may_name_the_table_by_its_path(spark: SparkSession, source: str, managed: ManagedTable) -> None:
    for place, use in ((source, lambda w: learn(spark, source, w)), (managed.path, managed.score)):
        texts = [f"SELECT id FROM {name} WHERE id < 40" for name in ("events", f"parquet.`{place}`", "parquet.`/no/t`")]
        with pytest.warns(HedgerowWarning, match=r"1 of 3 queries is left out: query q3 is left out: it reads .*/no/t"):
            use(Workload.from_sql(texts))


@pytest.mark.long
def test_routes_see_what_was_written_since(
    spark: SparkSession, source: str, workload: Workload, tmp_path: Path
) -> None:
    learned = learn(spark, source, workload, "range", LearnOptions(block_rows=BLOCK_ROWS), columns=["id"])
    table = apply(spark, source, learned, str(tmp_path / "events"))
    asked = f"SELECT id FROM parquet.`{table.path}` WHERE id < 40 OR id = 1000005"

    def routed() -> tuple[list[int], int]:
        found = route(spark, asked)
        return sorted(row.id for row in found.collect()), len(found.inputFiles())

    assert routed() == routed() == (list(range(40)), 1)
    more = spark.read.parquet(source).where("id < 1000").selectExpr("id + 1000000 AS id", "* EXCEPT (id)")
    table.append(more)
    grown = [*range(40), 1000005]
    assert routed() == (grown, 2)
    beside = learn(spark, source, workload, "range", LearnOptions(block_rows=4 * BLOCK_ROWS), columns=["number"])
    apply(spark, table.path, beside, table.path, replica="other")
    assert routed() == (grown, 2)
    smaller = tmp_path / "smaller"
    spark.read.parquet(source).where("id < 20").write.parquet(str(smaller))
    apply(spark, str(smaller), learned, table.path, overwrite=True)
    assert routed() == (list(range(20)), 1)


@pytest.mark.parametrize("size", [0, 1, 5999, 6000, 6001, 12_000, 299_999, 300_000, 300_001, 700_000])
def test_a_file_beside_a_table_is_read_whole(spark: SparkSession, tmp_path: Path, size: int) -> None:
    data = Random(size).randbytes(size)
    folder = Folder(spark, str(tmp_path))
    assert folder.write("some", data) and folder.read("some") == data
    assert folder.read_end("some", size, 4) == data[-4:]


@pytest.mark.long
def test_of_writers_of_one_new_file_one_succeeds(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path))
    for name in map(str, range(20)):
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(folder.write, name, bytes([i]) * 100, new=True) for i in range(4)]
        (winner,) = (i for i, writer in enumerate(writers) if writer.result())
        assert folder.read(name) == bytes([winner]) * 100
    assert sorted(folder.sizes()) == sorted(map(str, range(20)))


@pytest.mark.parametrize("n", [0, 1, 25, 26, 1300])
def test_a_folder_is_listed_whole(spark: SparkSession, tmp_path: Path, n: int) -> None:
    for i in range(n):
        (tmp_path / f"file, isDirectory=true; length={i}").write_bytes(b"x" * (i % 7))
        os.utime(tmp_path / f"file, isDirectory=true; length={i}", (0, 1000 + i))
    folder = Folder(spark, str(tmp_path))
    assert folder.sizes() == {f"file, isDirectory=true; length={i}": i % 7 for i in range(n)}
    assert folder.write_times() == {f"file, isDirectory=true; length={i}": 1000 + i for i in range(n)}
    if n == 1:
        (tmp_path / "FileStatus{path=x; isDirectory=false; modification_time=5}").mkdir()
        assert len(folder.sizes()) == len(folder.write_times()) == 2


def test_what_if_agrees_with_what_is_written(
    spark: SparkSession, source: str, workload: Workload, managed: ManagedTable
) -> None:
    exact = score(spark, source, workload, managed.layout, exact=True)
    assert exact.rows_read == pytest.approx(managed.score(workload).rows_read, abs=0.02)


@pytest.mark.long
def test_a_query_asked_again_opens_just_the_files_with_its_rows(
    spark: SparkSession, source: str, tmp_path: Path
) -> None:
    condition = "number % 7 = 3 AND id % 1000 < 50 AND word < 'm'"
    asked = Workload.from_sql(
        [f"SELECT id FROM events WHERE {c}" for c in (condition, "id < 500", "id BETWEEN 900 AND 2000", condition)]
    )
    learned = learn(spark, source, asked, "range", LearnOptions(block_rows=200), columns=["id"])
    table = apply(spark, source, learned, str(tmp_path / "events"))
    rows = table.read().where(condition).selectExpr("_metadata.file_name AS file").distinct().collect()
    files = table.files(where=condition)
    assert sorted(files) == sorted(row["file"] for row in rows)
    assert 0 < len(files) < len(table.files(where="word < 'm'"))


def test_the_newest_rows_are_learned_from(spark: SparkSession, source: str, tmp_path: Path) -> None:
    """ORDER BY with LIMIT has no condition, but rows in another order than by time would make it open every file."""
    sql = "SELECT id, number FROM events ORDER BY number * 1 DESC, id LIMIT 5", "SELECT * FROM events WHERE id < 300"
    newest = "SELECT id, number FROM events ORDER BY number DESC, id LIMIT 5"
    learned = learn(spark, source, Workload.from_sql([newest, *sql]), options=LearnOptions(block_rows=200))
    table = apply(spark, source, learned, str(tmp_path / "events"))
    spark.read.parquet(table.path).createOrReplaceTempView("events")
    expected = spark.sql(newest).collect()
    with attached_to(spark):
        assert spark.sql(newest).collect() == expected
        [scan] = hr.last_query(spark)
    assert scan.means == "top-k" and scan.files_opened < scan.files / 2


def test_bad_input_is_one_sentence(spark: SparkSession, source: str, workload: Workload, tmp_path: Path) -> None:
    def refused(call: Callable[[], object], words: str) -> None:
        with pytest.raises(HedgerowError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)

    refused(lambda: learn(spark, str(tmp_path / "none"), workload), "cannot be read")
    refused(lambda: learn(spark, source, Workload(())), "no query")
    refused(lambda: learn(spark, source, Workload.from_sql("SELECT 1 FROM a JOIN b ON a.x = b.x")), "reads a, b")
    refused(lambda: learn(spark, source, Workload.from_sql("SELECT 1 FROM events WHERE nothing = 1")), "nothing")
    refused(lambda: learn(spark, source, workload, learner="magic"), "no learner 'magic'")
    for learner in ("qdtree", "auto"):
        refused(
            lambda learner=learner: learn(spark, source, workload, learner, block_rows=5),
            r"pass options=LearnOptions\(block_rows=\.\.\.\)",
        )
        refused(lambda learner=learner: learn(spark, source, workload, learner, most=5), f"{learner} does not take")
    refused(lambda: learn(spark, spark.read.parquet(source).limit(0), workload), "empty")
    refused(lambda: open_table(spark, source), "no table that Hedgerow wrote")
    some = learn(spark, source, workload, "range", LearnOptions(block_rows=5_000))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    refused(lambda: apply(spark, source, some, str(tmp_path / "full")), "not empty")
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"


ESTIMATED = (*(("qdtree", {}), ("qdtree", {"overlap": True}), ("bottom_up", {})), *(("sop_zorder", {}), ("zorder", {})))


@pytest.mark.long
@pytest.mark.parametrize(("learner", "parameters"), ESTIMATED)
def test_seconds_are_estimated_whatever_the_layout(
    spark: SparkSession,
    source: str,
    workload: Workload,
    monkeypatch: pytest.MonkeyPatch,
    learner: str,
    parameters: dict[str, Any],
) -> None:
    monkeypatch.setattr(estimate_seconds, "SMALL_TABLE_BYTES", 0)
    options = LearnOptions(block_rows=BLOCK_ROWS, sample_rows=2_000, recurrence=1 if parameters else "auto")
    found = learn(spark, source, workload, learner, options, **parameters).estimate
    assert found is not None and 0 < found.now < 60 and 0 < found.then < 60


def test_nothing_is_estimated_where_queries_cannot_be_timed(
    spark: SparkSession, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition that fails on some rows, a layout by no column of the queries, rows that are not in files."""
    monkeypatch.setattr(estimate_seconds, "SMALL_TABLE_BYTES", 0)
    failing = Workload.from_sql(
        ["SELECT * FROM events WHERE CAST(word AS INT) = 3", "SELECT * FROM events WHERE id < 9"]
    )
    assert learn(spark, source, failing, "range", LearnOptions(block_rows=BLOCK_ROWS)).estimate is None
    plain = Workload.from_sql(["SELECT * FROM events WHERE id < 9"])
    assert learn(spark, source, plain, "random", LearnOptions(block_rows=BLOCK_ROWS)).estimate is None
    assert (
        learn(
            spark, spark.read.parquet(source), plain, "range", LearnOptions(block_rows=BLOCK_ROWS), table="events"
        ).estimate
        is None
    )


def test_little_is_to_be_gained_from_a_small_table(spark: SparkSession, source: str, workload: Workload) -> None:
    with pytest.warns(HedgerowWarning, match="little is to be gained: events has less than 16 MB") as warned:
        assert learn(spark, source, workload, "random", LearnOptions(block_rows=BLOCK_ROWS)).estimate is None
    assert [w.filename for w in warned if w.category is HedgerowWarning] == [__file__]
