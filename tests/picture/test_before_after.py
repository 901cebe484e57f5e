"""What queries took before and take now: measured where logs have both, else estimated for both, else not said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.picture import before_after
from hedgerow.picture.facts import Change, Kind, Picture, Prices, QueryReads
from hedgerow.picture.page import page
from hedgerow.pipeline.block_sizes import DISK
from hedgerow.tables.query_log import QueryLog
from tests.support.past_queries import past_query

ROWS = 4000
NOW, BEFORE = -0.01, 1  # days ago
CONDITIONS = ["id < 300", "number = 3 AND id > 5", "id >= 3901"]
QUERIES = [f"SELECT id, number FROM t WHERE {c}" for c in CONDITIONS]
LIMIT = "SELECT id, number FROM t WHERE number > 2 LIMIT 5"
UNKNOWN = Change()


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Parquet table, and what `apply` made of it."""
    folder = tmp_path_factory.mktemp("made")
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", "id * 7919 % 40 AS number", "concat('name ', id) AS name")
    rows.write.parquet(str(folder / "t"))
    workload, options = hr.Workload.from_sql([*QUERIES, LIMIT]), hr.LearnOptions(block_rows=400)
    hr.apply(spark, str(folder / "t"), hr.learn(spark, str(folder / "t"), workload, options=options), str(folder / "h"))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change; the source is where it was."""
    shutil.copytree(made / "h", tmp_path / "h")
    return tmp_path


def _kinds(spark: SparkSession, path: str, *queries: str) -> dict[str, Kind]:
    return {kind.text: kind for kind in hr.show(spark, path, hr.Workload.from_sql(queries or QUERIES)).picture.kinds}


def _column_bytes(folder: Path, names: list[str]) -> float:
    groups = [pq.read_metadata(folder / name).row_group(0) for name in names]
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    return sum(c.total_compressed_size for c in columns if c.path_in_schema in ("id", "number"))


def _log(spark: SparkSession, place: str, *entries: tuple[str, float, float | None], **facts: Any) -> None:
    """Log queries: a condition, the days since then, and the seconds."""
    made = [
        {**past_query(condition, days, number), "seconds": seconds, **facts}
        for number, (condition, days, seconds) in enumerate(entries)
    ]
    QueryLog.of(spark, place).append(made)


def test_without_a_log_both_are_estimated(spark: SparkSession, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before_after, "SMALL_TABLE_BYTES", 0)
    kinds = _kinds(spark, str(made / "h"), *QUERIES, LIMIT)
    table = hr.table(spark, str(made / "h"))
    everything = _column_bytes(made / "h", table.files())
    for text, before in (("id < 300", 0.5), ("id >= 3901", 0.5)):  # a file of two, by its footer
        opened = table.files(text)
        now = _column_bytes(made / "h", opened)
        assert kinds[text].bytes == Change(pytest.approx(before * everything), pytest.approx(now))
        # Spark opens both files of the source, and reads rows of one.
        seconds = DISK.seconds("", 2, before * everything), DISK.seconds("", len(opened), now)
        assert kinds[text].seconds == Change(*map(pytest.approx, seconds))
    (limited,) = (kind for kind in kinds.values() if kind.text.endswith("LIMIT 5"))
    assert limited.seconds == limited.bytes == UNKNOWN


def test_nothing_is_said_of_the_seconds_of_a_small_table(spark: SparkSession, made: Path) -> None:
    assert all(k.seconds == UNKNOWN and k.bytes.before for k in _kinds(spark, str(made / "h")).values())


def test_a_log_of_both_times_measures(spark: SparkSession, folder: Path, made: Path) -> None:
    source, own = str(folder / "t"), str(folder / "h")
    shutil.copytree(made / "t", source)
    workload, options = hr.Workload.from_sql(QUERIES), hr.LearnOptions(block_rows=400)
    shutil.rmtree(own)
    hr.apply(spark, source, hr.learn(spark, source, workload, options=options), own)
    # Other literals of a kind count. Without seconds, an entry does not.
    _log(spark, source, ("id < 5", BEFORE, 8.0), ("id < 7", NOW, 10.0), ("id < 9", BEFORE, None))
    _log(spark, own, ("id < 8", NOW, 1.0), ("id < 99", NOW, 2.0), ("id > 3", NOW, 0.1))
    kinds = _kinds(spark, own)
    assert kinds["id < 300"].seconds == Change(9.0, 1.5, "measured")
    assert kinds["id >= 3901"].seconds == UNKNOWN  # it was not logged before
    # The log has the bytes of whole files; each of these had 100 of them.
    share = _column_bytes(folder / "h", hr.table(spark, own).files()) / sum(
        (folder / "h" / name).stat().st_size for name in hr.table(spark, own).files()
    )
    size = kinds["id < 300"].bytes
    assert size.before == size.now and 0.9 * share < (size.before or 0) / 100 <= 1


def test_what_a_log_does_not_tell_apart_is_not_measured(spark: SparkSession, folder: Path) -> None:
    own = str(folder / "h")
    _log(spark, own, ("id < 5", BEFORE, 8.0), ("id < 6", NOW, 1.0))
    queries = ["SELECT id, number FROM t WHERE id < 7", "SELECT id, number FROM t WHERE id < 7 ORDER BY id LIMIT 3"]
    assert all(kind.seconds == UNKNOWN for kind in _kinds(spark, own, *queries).values())
    assert _kinds(spark, own, queries[0])["id < 7"].seconds == Change(8.0, 1.0, "measured")
    assert _kinds(spark, own, "SELECT name FROM t WHERE id < 7")["id < 7"].seconds == UNKNOWN  # other columns


def test_redacted_queries_do_not_count(spark: SparkSession, folder: Path) -> None:
    _log(spark, str(folder / "h"), ("id < 5", BEFORE, 8.0), ("id < 6", NOW, 1.0), redacted=True)
    assert _kinds(spark, str(folder / "h"))["id < 300"].seconds == UNKNOWN


def test_a_source_that_is_gone_or_another_says_nothing(spark: SparkSession, folder: Path) -> None:
    source, own = str(folder / "t"), str(folder / "h")
    spark.range(ROWS).selectExpr("id", "id AS number").write.parquet(source)
    workload = hr.Workload.from_sql(QUERIES)
    shutil.rmtree(own)
    hr.apply(spark, source, hr.learn(spark, source, workload, options=hr.LearnOptions(block_rows=400)), own)
    assert _kinds(spark, own)["id < 300"].bytes.before
    spark.range(ROWS).selectExpr("id", "CAST(id AS STRING) AS number").write.mode("overwrite").parquet(source)
    changed = hr.show(spark, own, workload)
    assert {kind.bytes.before for kind in changed.picture.kinds} == {None}
    assert changed.picture.kinds[0].bytes.now is not None
    shutil.rmtree(source)
    assert {kind.bytes.before for kind in _kinds(spark, own).values()} == {None}


def test_a_delta_table_has_its_earlier_version_and_its_own_log(delta: SparkSession, made: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    delta.read.parquet(str(made / "t")).repartitionByRange(4, "id").write.format("delta").save(place)
    files = delta.read.format("delta").load(place).groupBy("_metadata.file_name").agg({"id": "min", "*": "count"})
    share = sum(row["count(1)"] for row in files.collect() if row["min(id)"] < 300) / ROWS
    workload = hr.Workload.from_sql(QUERIES)
    hr.apply(delta, place, hr.learn(delta, place, workload, options=hr.LearnOptions(block_rows=400), table="t"))
    table = hr.table(delta, place)
    everything = _column_bytes(tmp_path / "t", table.files())
    assert _kinds(delta, place)["id < 300"].bytes.before == pytest.approx(share * everything) and share < 0.5
    _log(delta, place, ("id < 5", BEFORE, 8.0), ("id < 6", NOW, 1.0))
    assert _kinds(delta, place)["id < 300"].seconds == Change(8.0, 1.0, "measured")
    table.rollback()
    assert _kinds(delta, place)["id < 300"].seconds == UNKNOWN


def test_prices_need_all_that_has_a_price() -> None:
    seconds, size = Change(7.2, 3.6, "measured"), Change(2e9, 1e9)
    assert Prices(hour=10.0).of(seconds, size) == Change(pytest.approx(20.0), pytest.approx(10.0), "measured")
    assert Prices(terabyte=5.0).of(UNKNOWN, size) == Change(pytest.approx(10.0), pytest.approx(5.0))
    assert Prices(10.0, 5.0).of(seconds, size) == Change(pytest.approx(30.0), pytest.approx(15.0), "partly measured")
    assert Prices(10.0, 5.0).of(Change(None, 3.6), size).before is None
    assert Prices().of(seconds, size) == UNKNOWN


def test_the_page_says_how_each_figure_is_known() -> None:
    def read(text: str, seconds: Change, size: Change) -> QueryReads:
        return QueryReads(text, 1.0, None, frozenset(), kind=text, seconds=seconds, bytes=size)

    some = (
        read("a", Change(8.0, 0.25, "measured"), Change(4096.0, 1024.0)),
        read("b", Change(None, 0.5), UNKNOWN),
    )
    shown = page(Picture("t", (), some, (), None, (), (), ()))
    assert "<td>8.0 s → 0.25 s measured</td><td>4.0 KB → 1.0 KB estimated</td></tr>" in shown
    assert "<td>b</td><td>1</td><td>– → 0.50 s estimated</td><td>–</td></tr>" in shown
    assert "price of" not in shown
    priced = page(Picture("t", (), some, (), None, (), (), (), prices=Prices(terabyte=1000.0)))
    assert "<td>4.0 KB → 1.0 KB estimated</td><td>0.00 → 0.00 estimated</td></tr>" in priced
    nothing = read("c", UNKNOWN, UNKNOWN)
    assert "is not known" in page(Picture("t", (), (nothing,), (), None, (), (), ()))
