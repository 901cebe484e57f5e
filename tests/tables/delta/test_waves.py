"""A Delta table is rewritten in waves: it is as if it were rewritten at once, and an interrupted run goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.storage.delta_rewrite import Rewrite
from tests.support.answers import answer
from tests.support.delta_tables import now
from tests.support.waves import (
    ROWS,
    WAVES,
    Interrupted,
    check,
    in_waves,
    interrupt,
    learned_by_v,
    rows,
)


@pytest.fixture(scope="module")
def learned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> hr.Learned:
    return learned_by_v(spark, str(tmp_path_factory.mktemp("learned") / "t"))


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
