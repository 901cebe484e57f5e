"""A table is written in waves: it is as if it were written at once, and an interrupted run goes on with its wave."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hedgerow as hr
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.spark.storage import waves as dividing
from hedgerow.spark.storage.delta_rewrite import Rewrite
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet import waves, write
from tests.support.answers import answer, answers
from tests.support.delta_tables import now
from tests.support.lay_out import asking, by_ranges

ROWS, FILES, WAVES = 3000, 6, 3
ASKED = ["v < 2", "id = 77", "id BETWEEN 100 AND 300 AND v = 3"]


def rows(spark: SparkSession) -> DataFrame:
    """Rows in files that each hold all values of both columns' ranges."""
    return spark.range(ROWS).selectExpr("id", "id % 7 AS v", "sha2(CAST(id AS STRING), 256) AS text").repartition(FILES)


def in_waves(spark: SparkSession, source: str, count: int = WAVES) -> hr.WriteOptions:
    """Options with which the files of this source are written in so many waves."""
    opened = open_source(spark, source)
    sizes = sorted(opened.sizes.values()) if opened.sizes else sorted(f.stat().st_size for f in parquet(Path(source)))
    options = hr.WriteOptions(wave_bytes=f"{sum(sizes[-(FILES // count) :])}B")
    return options


def parquet(folder: Path) -> list[Path]:
    return [f for f in folder.rglob("*.parquet") if "_hedgerow" not in f.parts]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> str:
    rows(spark).write.parquet(str(tmp_path / "source"))
    return str(tmp_path / "source")


@pytest.fixture(scope="module")
def learned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> hr.Learned:
    place = str(tmp_path_factory.mktemp("learned") / "t")
    rows(spark).write.parquet(place)
    return by_ranges(spark, place, "v", ROWS // 4, ASKED)


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


def check(spark: SparkSession, table: ManagedTable, expected: DataFrame) -> None:
    assert answer(table.read()) == answer(expected)
    for condition, plain in zip(ASKED, answers(expected, ASKED), strict=True):
        assert answer(table.read(where=condition)) == plain, condition
    assert table.verify()["rows"] == expected.count()


def left_beside(place: Path) -> list[str]:
    return sorted(p.name for p in place.parent.iterdir() if "hedgerow" in p.name)


# --- Parquet ---


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


class Interrupted(Exception):
    """The run stops here."""


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, before: bool) -> None:
    """Let a function raise an error at its call of this number, before or after it has done its work."""
    real, calls = getattr(owner, name), [0]

    def run(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if before and calls[0] == call:
            raise Interrupted
        result = real(*args, **named)
        if calls[0] == call:
            raise Interrupted
        return result

    monkeypatch.setattr(owner, name, run)


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


# --- Delta ---


@pytest.fixture
def table(delta: SparkSession, tmp_path: Path) -> str:
    rows(delta).write.format("delta").save(str(tmp_path / "delta"))
    return str(tmp_path / "delta")


def test_a_delta_table_in_waves(
    delta: SparkSession, table: str, learned: hr.Learned, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answer(now(delta, table))
    managed = hr.apply(delta, table, learned, options=in_waves(delta, table))
    check(delta, managed, now(delta, table))
    assert [(o["wave"], o["waves"]) for o in managed.history()] == [(3, 3), (2, 3), (1, 3)]
    for done in managed.history():  # each version is whole
        assert answer(managed.read(version=done["version"])) == expected
        assert answer(managed.read(where="v = 3", version=done["version"])) == answer(now(delta, table).where("v = 3"))
    assert managed.verify()["unknown_files"] == 0
    assert "apply: wave 3 of 3 is committed" in capfd.readouterr().err
    before = set(managed.known.names)
    monkeypatch.setattr("hedgerow.tables.delta.rewrite._MAX_DEAD_PARTS", 1)
    managed = hr.apply(delta, table, learned, options=in_waves(delta, table))  # a new run, for the last one has ended
    assert not before & set(managed.known.names) and len(managed.history()) > WAVES
    assert answer(now(delta, table)) == expected
    version = managed.history()[0]["version"]
    managed = managed.rollback()
    assert set(managed.known.names) == before and managed.history()[0]["version"] == version + 1
    assert managed.verify()["unknown_files"] == 0
    managed = managed.rollback()
    assert answer(managed.read()) == expected
    with pytest.raises(hr.HedgerowError, match="no rewrite"):
        managed.rollback()


def test_rollback_keeps_rows_that_came_between_waves(delta: SparkSession, table: str, learned: hr.Learned) -> None:
    before = set(files_of(delta, table))
    real, calls = Rewrite.commit, [0]

    def commit(self: Rewrite, *args: Any) -> int:
        version = real(self, *args)
        calls[0] += 1
        if calls[0] == 2:
            one_more(delta, table)
        return version

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rewrite, "commit", commit)
        managed = hr.apply(delta, table, learned, options=in_waves(delta, table))
    check(delta, managed, now(delta, table))
    assert managed.read().count() == ROWS + 1
    managed = managed.rollback()
    assert managed.read().count() == ROWS + 1 and set(files_of(delta, table)) > before


def one_more(delta: SparkSession, table: str) -> None:
    delta.range(1).selectExpr("-1L AS id", "0L AS v", "'new' AS text").write.format("delta").mode("append").save(table)


def files_of(delta: SparkSession, table: str) -> list[str]:
    return [path.rpartition("/")[2] for path in now(delta, table).inputFiles()]


@pytest.mark.parametrize(
    ("owner", "name", "call", "before", "kept"),
    [
        (Rewrite, "commit", 2, True, 1),
        (Rewrite, "commit", 2, False, 2),  # committed, but its version is not listed
        pytest.param("rewrite", "collect_files_and_rows", 1, False, 0, marks=pytest.mark.long),
        pytest.param("rewrite", "_list_part", 2, False, 1, marks=pytest.mark.long),
        pytest.param("rewrite", "collect_files_and_rows", 3, True, 2, marks=pytest.mark.long),
        pytest.param(Rewrite, "commit", 3, True, 2, marks=pytest.mark.long),
    ],
)
def test_an_interrupted_rewrite_goes_on(
    delta: SparkSession, table: str, learned: hr.Learned, owner: Any, name: str, call: int, before: bool, kept: int
) -> None:
    from hedgerow.tables.delta import rewrite

    options, expected = in_waves(delta, table), answer(now(delta, table))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        interrupt(patch, rewrite if owner == "rewrite" else owner, name, call, before)
        hr.apply(delta, table, learned, options=options)
    assert answer(now(delta, table)) == expected
    finished = set(files_of(delta, table)) & known(delta, table)
    assert bool(finished) == bool(kept)
    managed = hr.apply(delta, table, learned, options=options)
    check(delta, managed, now(delta, table))
    assert answer(now(delta, table)) == expected
    assert finished <= set(files_of(delta, table))  # what was committed is not written again
    assert sorted((o["wave"], o["waves"]) for o in managed.history()) == [(1, 3), (2, 3), (3, 3)]
    assert managed.verify()["unknown_files"] == 0


def known(delta: SparkSession, table: str) -> set[str]:
    try:
        return {name.rpartition("/")[2] for name in hr.table(delta, table).known.names}
    except hr.HedgerowError:
        return set()


def test_others_change_the_table_between_waves(delta: SparkSession, table: str, learned: hr.Learned) -> None:
    def stop(call: int) -> None:
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
            interrupt(patch, Rewrite, "commit", call, True)
            hr.apply(delta, table, learned, options=in_waves(delta, table))

    stop(2)
    delta.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")
    one_more(delta, table)
    managed = hr.apply(delta, table, learned, options=in_waves(delta, table))
    check(delta, managed, now(delta, table))
    assert managed.read().count() == ROWS - ROWS // 10 + 1


def test_a_wave_begins_again_after_a_conflict(delta: SparkSession, table: str, learned: hr.Learned) -> None:
    real, calls = Rewrite.commit, [0]

    def commit(self: Rewrite, *args: Any) -> int:
        calls[0] += 1
        if calls[0] == 2:
            delta.sql(f"DELETE FROM delta.`{table}` WHERE id % 10 = 3")  # replaces every file
            one_more(delta, table)
        return real(self, *args)

    options = hr.WriteOptions(wave_bytes=in_waves(delta, table).wave_bytes, retries=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rewrite, "commit", commit)
        managed = hr.apply(delta, table, learned, options=options)
    check(delta, managed, now(delta, table))
    assert managed.read().count() == ROWS - ROWS // 10 + 1 and calls[0] == 2


def after_commit(patch: pytest.MonkeyPatch, call: int, change: Callable[[], Any]) -> None:
    """Let others change the table after a run's commit of this number."""
    real, calls = Rewrite.commit, [0]

    def commit(self: Rewrite, *args: Any) -> int:
        version = real(self, *args)
        calls[0] += 1
        if calls[0] == call:
            change()
        return version

    patch.setattr(Rewrite, "commit", commit)


def test_others_optimize_between_waves(delta: SparkSession, table: str, learned: hr.Learned) -> None:
    expected, options = answer(now(delta, table)), in_waves(delta, table)
    with pytest.MonkeyPatch.context() as patch:
        after_commit(patch, 1, lambda: delta.sql(f"OPTIMIZE delta.`{table}`"))
        managed = hr.apply(delta, table, learned, options=options)
    assert answer(managed.read()) == expected  # the other waves' files are gone, so there is nothing to rewrite
    managed = hr.apply(delta, table, learned, options=options)
    check(delta, managed, now(delta, table))
    assert managed.verify()["unknown_files"] == 0 and answer(now(delta, table)) == expected
    assert answer(managed.rollback().read()) == expected


def test_a_parquet_copy_of_a_delta_table(
    delta: SparkSession, table: str, learned: hr.Learned, tmp_path: Path, written: list[int]
) -> None:
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
