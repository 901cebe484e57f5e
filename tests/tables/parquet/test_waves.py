"""A Parquet table is written in waves: it is as if it were written at once, and an interrupted run goes on."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.spark.storage import waves as dividing
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet import waves, write
from tests.support.answers import answer
from tests.support.delta_tables import now
from tests.support.lay_out import asking, by_ranges
from tests.support.waves import (
    ASKED,
    ROWS,
    WAVES,
    Interrupted,
    check,
    in_waves,
    interrupt,
    learned_by_v,
    parquet,
    rows,
)


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    rows(spark).write.parquet(str(tmp_path / "source"))
    return str(tmp_path / "source")


@pytest.fixture(scope="module")
def learned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> hr.Learned:
    return learned_by_v(spark, str(tmp_path_factory.mktemp("learned") / "t"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that `write_files` wrote, a number for each wave."""
    counts: list[int] = []
    real = write.write_files

    def counted(*args: Any) -> Any:
        result = real(*args)
        counts.append(result[0].rows)
        return result

    monkeypatch.setattr(write, "write_files", counted)
    return counts


def left_beside(place: Path) -> list[str]:
    return sorted(p.name for p in place.parent.iterdir() if "hedgerow" in p.name)


def test_a_table_in_waves(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, written: list[int], capfd: Any
) -> None:
    expected, to = spark.read.parquet(source), tmp_path / "table"
    at_once = hr.apply(spark, source, learned, str(tmp_path / "at_once"))
    assert len(written) == 1
    table = hr.apply(spark, source, learned, str(to), in_waves(spark, source))
    assert len(written) == 1 + WAVES and sum(written[1:]) == ROWS and max(written[1:]) < ROWS // 2
    check(spark, table, expected)
    assert answer(spark.read.parquet(str(to))) == answer(expected)
    [part], [whole] = table.state.parts, at_once.state.parts
    assert part.checksum == whole.checksum and part.statistics == whole.statistics
    assert len(at_once.known) < len(table.known) <= WAVES * len(at_once.known)
    for condition in ASKED:  # narrower files: no more rows are read
        assert table.score(asking([condition])).rows_read <= at_once.score(asking([condition])).rows_read
    assert [o["operation"] for o in table.history()] == ["apply"]
    assert not [name for name in table.format.side.sizes() if name.startswith("wave-")]
    used = {*part.files_used, "state-1.json"}
    assert {n for n in table.format.side.sizes() if not n.startswith(".")} == used and not left_beside(to)
    told = [line for line in capfd.readouterr().err.splitlines() if line.startswith("apply: ")]
    assert [line.split(" is written")[0] for line in told] == [f"apply: wave {n} of 3" for n in (1, 2, 3)]
    assert told[-2].endswith(" left") and told[-1].endswith(" is written")


@pytest.mark.parametrize("size", ["", "many", "3 apples", "-1GB"])
def test_a_size_that_is_none(size: str) -> None:
    with pytest.raises(hr.HedgerowError, match="a wave size is written like 64MB"):
        hr.WriteOptions(wave_bytes=size)


@pytest.mark.parametrize(
    ("owner", "name", "call", "before", "kept"),
    [
        (waves, "_finish", 1, True, 0),
        (waves, "_finish", 1, False, 1),
        (write, "collect_files_and_rows", 2, False, 1),  # its files are there, but not proved
        (write, "write_first_state", 1, False, 3),
        pytest.param(write, "write_blocks", 1, False, 0, marks=pytest.mark.long),
        pytest.param(write, "write_blocks", 2, True, 1, marks=pytest.mark.long),
        pytest.param(waves, "_finish", 3, True, 2, marks=pytest.mark.long),
        pytest.param(waves, "_finish", 3, False, 3, marks=pytest.mark.long),
        pytest.param(write, "write_part", 1, False, 3, marks=pytest.mark.long),
        pytest.param(write, "exchange", 1, True, 3, marks=pytest.mark.long),
    ],
)
def test_an_interrupted_run_goes_on(
    spark: SparkSession,
    source: str,
    learned: hr.Learned,
    tmp_path: Path,
    written: list[int],
    owner: Any,
    name: str,
    call: int,
    before: bool,
    kept: int,
) -> None:
    to, options = tmp_path / "table", in_waves(spark, source)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt(patch, owner, name, call, before)
        hr.apply(spark, source, learned, str(to), options)
    assert not to.exists()
    assert len(left_beside(to)) == (kept > 0)
    finished = {f.name for left in left_beside(to) for f in parquet(to.parent / left)}
    with pytest.raises(hr.HedgerowError, match="apply again" if kept else "nothing at that path"):
        hr.table(spark, str(to))
    written.clear()
    table = hr.apply(spark, source, learned, str(to), options)
    assert len(written) == WAVES - kept
    assert len(finished & set(table.known.names)) >= kept and not left_beside(to)
    check(spark, table, spark.read.parquet(source))
    assert {f.name for f in parquet(to)} == set(table.known.names)


def test_waves_of_another_run_are_written_again(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    to, options = tmp_path / "table", in_waves(spark, source)

    def stop() -> None:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
            interrupt(patch, waves, "_finish", 2, False)
            hr.apply(spark, source, learned, str(to), options, overwrite=True)
        written.clear()

    def goes_on(**changed: Any) -> int:
        used = {"layout": learned, "options": options, **changed}
        table = hr.apply(spark, source, used["layout"], str(to), used["options"], overwrite=True)
        assert answer(table.read()) == answer(spark.read.parquet(source))
        assert not left_beside(to)
        return WAVES - len(written)

    stop()
    assert goes_on() == 2
    stop()
    other = by_ranges(spark, source, "v", ROWS // 2, ASKED)
    assert goes_on(layout=other) == 0
    stop()
    assert goes_on(options=hr.WriteOptions(wave_bytes=options.wave_bytes, sort_by=["id"])) == 0
    stop()
    [place] = left_beside(to)
    [record] = (tmp_path / place / "_hedgerow").glob("wave-1.json")
    record.write_bytes(record.read_bytes().replace(b'"rows": ', b'"rows": 1'))
    assert goes_on() == 1
    stop()
    [place] = left_beside(to)
    next(iter(parquet(tmp_path / place))).unlink()
    assert goes_on() == 1
    stop()
    spark.range(1).selectExpr("-1L AS id", "0L AS v", "'new' AS text").write.mode("append").parquet(source)
    assert goes_on() <= 0  # there may be one more wave
    stop()
    written.clear()
    table = hr.apply(spark, source, learned, str(to), overwrite=True)  # at once
    assert len(written) == 1 and not left_beside(to)
    check(spark, table, spark.read.parquet(source))


def test_files_without_rows_and_a_wave_for_each_file(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    for _ in range(2):
        spark.read.parquet(source).where("false").coalesce(1).write.mode("append").parquet(source)
    files = len(parquet(Path(source)))
    table = hr.apply(spark, source, learned, str(tmp_path / "table"), hr.WriteOptions(wave_bytes="1B"))
    assert len(written) == files and written.count(0) == 2
    check(spark, table, spark.read.parquet(source))


def test_rows_that_are_lost_are_noticed(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = dividing._by_ranges
    monkeypatch.setattr(dividing, "_by_ranges", lambda frame, firsts: [*real(frame, firsts)[:-1], frame.limit(0)])
    with pytest.raises(hr.HedgerowError, match=f"the waves have .* but .* has {ROWS}"):
        hr.apply(spark, source, learned, str(tmp_path / "table"), in_waves(spark, source))


@pytest.mark.parametrize("name", ["a b", "a%20b", "ü{x}", "x'y"])
def test_odd_names_and_partitions(
    spark: SparkSession, learned: hr.Learned, tmp_path: Path, written: list[int], name: str
) -> None:
    source = str(tmp_path / name)
    rows(spark).coalesce(2).write.partitionBy("v").parquet(source)
    sizes = [f.stat().st_size for f in parquet(Path(source))]
    options = hr.WriteOptions(wave_bytes=f"{sum(sizes) // 3}B")
    table = hr.apply(spark, source, learned, str(tmp_path / "table"), options)
    assert len(written) >= 3 and max(written) < ROWS // 2
    check(spark, table, open_source(spark, source).frame)


def test_what_cannot_be_divided_is_written_at_once(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    options, plain = in_waves(spark, source), spark.read.parquet(source)
    table = hr.apply(spark, plain, learned, str(tmp_path / "plain"), options)  # a frame that is all of the files
    assert len(written) == WAVES
    check(spark, table, plain)
    written.clear()
    few = plain.limit(ROWS)  # each wave might get other rows
    with pytest.warns(
        hr.HedgerowWarning, match="written at once, because it is not a list of plain files, or only one"
    ):
        hr.apply(spark, few, learned, str(tmp_path / "few"), options)
    crossing = [f"{v} AND {i}" for v in ("v < 4", "v >= 3") for i in ("id < 1750", "id >= 1250")]
    rows = hr.LearnOptions(block_rows=ROWS // 6)
    overlap = hr.learn(spark, source, asking(crossing), "qdtree", rows, table="t", overlap=True)
    assert isinstance(overlap.layout, OverlapLayout)
    with pytest.warns(hr.HedgerowWarning, match="because the layout keeps rows in several blocks"):
        hr.apply(spark, source, overlap, str(tmp_path / "overlap"), options)
    assert written == [ROWS, ROWS]


def test_a_small_partitioned_table_of_the_catalog(
    spark: SparkSession, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    rows(spark).write.partitionBy("v").option("path", str(tmp_path / "source")).saveAsTable("parted")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", hr.HedgerowWarning)  # Spark's guess of its size is huge
            table = hr.apply(spark, "parted", learned, str(tmp_path / "table"))
        check(spark, table, spark.table("parted"))
        with pytest.warns(hr.HedgerowWarning, match="written at once, because it is not a list of plain files"):
            hr.apply(spark, "parted", learned, str(tmp_path / "other"), hr.WriteOptions(wave_bytes="1KB"))
    finally:
        spark.sql("DROP TABLE parted")
    assert written == [ROWS, ROWS]


def test_a_replica_in_waves(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    to = str(tmp_path / "table")
    table = hr.apply(spark, source, learned, to, in_waves(spark, source))
    second = by_ranges(spark, source, "id", ROWS // 4, ASKED)
    sizes = table.known.sizes.tolist()
    written.clear()
    table = hr.apply(spark, to, second, to, hr.WriteOptions(wave_bytes=f"{sum(sizes) // 2}B"), replica="second")
    assert len(written) > 1 and sum(written) == ROWS
    check(spark, table, spark.read.parquet(source))
    assert table.verify()["replicas"] == {"second": "as the table"}
    assert not [f for f in Path(to).rglob("wave-*")]


def test_a_table_with_an_unfinished_replica_is_replaced(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path
) -> None:
    to = str(tmp_path / "table")
    table = hr.apply(spark, source, learned, to)
    options = hr.WriteOptions(wave_bytes=f"{sum(table.known.sizes.tolist()) // 2}B")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Folder, "delete", lambda *_: None)  # as if the process was killed
        interrupt(patch, write, "write_blocks", 1, False)
        hr.apply(spark, to, by_ranges(spark, source, "id", ROWS // 4, ASKED), to, options, replica="second")
    assert next(Path(to).glob("_hedgerow/replicas/.second.*"))
    table = hr.apply(spark, source, learned, to, overwrite=True)
    check(spark, table, spark.read.parquet(source))


def test_a_parquet_copy_of_a_delta_table(
    delta: SparkSession, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
    table = str(tmp_path / "delta")
    rows(delta).write.format("delta").save(table)
    delta.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)")
    delta.sql(f"DELETE FROM delta.`{table}` WHERE id % 100 = 7")
    to, options = tmp_path / "copy", in_waves(delta, table)
    run: Callable[[], ManagedTable] = lambda: hr.apply(delta, table, learned, str(to), options)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt(patch, waves, "_finish", 2, False)
        run()
    written.clear()
    check(delta, run(), now(delta, table))
    assert 1 <= len(written) < WAVES
    shutil.rmtree(to)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt(patch, waves, "_finish", 2, False)
        run()
    written.clear()
    delta.sql(f"DELETE FROM delta.`{table}` WHERE id % 100 = 8")
    check(delta, run(), now(delta, table))
    assert len(written) >= WAVES


def test_files_that_hold_a_folder_of_a_running_process_are_left_alone(
    spark: SparkSession, source: str, learned: hr.Learned, tmp_path: Path
) -> None:
    to, options = tmp_path / "table", in_waves(spark, source)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt(patch, waves, "_finish", 2, False)
        hr.apply(spark, source, learned, str(to), options)
    [place] = left_beside(to)
    running = Path(write.new_partial(str(to))[1])
    Folder(spark, str(tmp_path)).move(place, running.name)
    hr.apply(spark, source, learned, str(to), options)
    assert left_beside(to) == [running.name]
