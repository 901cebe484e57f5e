"""Copies of a table in two layouts: the same rows whichever is read, and none is read that is not up to date."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables import managed
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet import append, write
from tests.support.answers import answer, answers, ask_all
from tests.support.things_table import write_things

INSIDE = "_hedgerow/replicas/second"


ASKED = ["id < 100", "price < 5", "price = 7 OR id = 7"]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ManagedTable]:
    source = write_things(spark, str(tmp_path_factory.mktemp("plain") / "things.parquet"))
    workload = hr.Workload.from_sql([f"SELECT * FROM things WHERE {c}" for c in ASKED])
    first = hr.learn(spark, source, workload, "range", hr.LearnOptions(block_rows=250), columns=["id"])
    table = hr.apply(spark, source, first, str(tmp_path_factory.mktemp("made") / "things"))
    second = hr.learn(spark, source, workload, "range", hr.LearnOptions(block_rows=250), given=[table.path])
    return source, hr.apply(spark, table.path, second, table.path, replica="second")


@pytest.fixture
def pair(made: tuple[str, ManagedTable], tmp_path: Path) -> ManagedTable:
    """A copy that a test may spoil."""
    shutil.copytree(made[1].path, tmp_path / "things")
    return ManagedTable.open(made[1].spark, str(tmp_path / "things"))


def read(table: ManagedTable) -> bool:
    """Whether the replica is read; in any case the rows are those that plain Spark finds."""
    again = ManagedTable.open(table.spark, table.path)
    expected = answers(table.spark.read.parquet(table.path), ASKED)
    for opened in (table, again) if table.replicas else (again,):  # also whoever opened it before
        assert ask_all([opened.read(c) for c in ASKED])[0] == expected
    used = any(INSIDE in name for c in ASKED for name in again.files(c))
    (told,) = again.describe()["replicas"]
    assert (told["name"], told["layout"], told["up_to_date"]) == ("second", "curve", used)
    return used


@pytest.mark.long
def test_a_layout_for_the_other_column(made: tuple[str, ManagedTable]) -> None:
    _, table = made
    assert read(table)
    assert all(INSIDE in n for n in table.files("price < 5"))
    assert not any(INSIDE in n for n in table.files("id < 100"))
    assert table.files("true") == table.files() == list(table.known.names)
    assert table.read("price < 5", ["id"]).count() == table.spark.read.parquet(table.path).where("price < 5").count()


def test_who_asks_for_files_is_told_of_the_table(spark: SparkSession, made: tuple[str, ManagedTable]) -> None:
    source, table = made
    sql = f"SELECT DISTINCT _metadata.file_path FROM parquet.`{table.path}` WHERE price < 5"
    assert all(INSIDE not in row[0] for row in hr.route(spark, sql).collect())
    assert answer(spark.read.parquet(table.path)) == answer(spark.read.parquet(source))


def test_an_append_goes_to_both(spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable) -> None:
    more = spark.read.parquet(made[0]).where("id < 300").selectExpr("id + 5000 AS id", "* EXCEPT (id)")
    grown = pair.append(more)
    assert read(grown)
    assert grown.read("price < 5").count() == 115
    assert grown.verify()["replicas"] == {"second": "as the table"}
    assert sum("_hedgerow" in n for n in grown.files("price < 5 AND id > 4000")) >= 1


@pytest.mark.long
def test_other_queries_for_the_index(pair: ManagedTable) -> None:
    relearned = pair.relearn(hr.Workload.from_sql([f"SELECT * FROM {pair.name} WHERE id % 7 = 3"]))
    assert read(relearned) and relearned.verify()["replicas"] == {"second": "as the table"}


@pytest.mark.long
def test_a_replica_that_fell_behind(
    spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two appends; then caught up."""
    more = spark.read.parquet(made[0]).where("id < 50")
    with monkeypatch.context() as patched:
        patched.setattr(managed, "catch_up", lambda *of: ["died"])
        with pytest.warns(hr.HedgerowWarning, match="died"):
            pair.append(more)
    assert not read(pair)
    assert ManagedTable.open(spark, pair.path).verify()["replicas"] == {"second": "not up to date, so not read"}
    assert read(pair.refresh_replicas())
    assert ManagedTable.open(spark, pair.path).verify()["replicas"] == {"second": "as the table"}


@pytest.mark.long
def test_a_catching_up_that_dies(
    spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files lie in the replica, and nobody knows them."""
    more = spark.read.parquet(made[0]).where("id < 50")
    usual = append.update_state

    def dying(side: Folder, *args: Any) -> None:
        if INSIDE in side.root:
            place = Path(pair.path, INSIDE)
            shutil.copy(next(place.glob("part-*")), place / "part-00000-left-behind.parquet")
            raise hr.HedgerowError("killed")
        usual(side, *args)

    with monkeypatch.context() as patched, pytest.warns(hr.HedgerowWarning, match="killed"):
        patched.setattr(append, "update_state", dying)
        pair.append(more)
    assert not read(pair)
    assert read(pair.refresh_replicas())
    assert ManagedTable.open(spark, pair.path).verify()["replicas"] == {"second": "as the table"}


@pytest.mark.long
def test_two_who_catch_up_at_once(
    spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is done when our commit comes: nothing is copied twice."""
    usual, others = append.update_state, list[str]()

    def late(side: Folder, *args: Any) -> None:
        if INSIDE in side.root and not others:
            others.append(side.root)
            ManagedTable.open(spark, pair.path).refresh_replicas()
        usual(side, *args)

    monkeypatch.setattr(append, "update_state", late)
    grown = pair.append(spark.read.parquet(made[0]).where("id < 50"))
    assert others
    assert read(grown)
    assert grown.verify()["replicas"] == {"second": "as the table"}


@pytest.mark.parametrize("what", ["added", "removed", "replaced", "replica"])
def test_files_changed_by_others(made: tuple[str, ManagedTable], pair: ManagedTable, what: str) -> None:
    some = Path(pair.path, pair.known.names[3])
    match what:
        case "added":
            shutil.copy(some, Path(pair.path, "theirs.parquet"))
        case "removed":
            some.unlink()
        case "replaced":
            shutil.copy(Path(pair.path, pair.known.names[0]), some)
            Path(some.parent, f".{some.name}.crc").unlink()
        case "replica":
            Path(pair.path, INSIDE, pair.replicas["second"].known.names[0]).unlink()
    assert not read(pair)


def test_overwritten(spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable) -> None:
    half = spark.read.parquet(made[0]).where("id < 1000")
    fresh = hr.apply(spark, half, pair.layout, pair.path, overwrite=True)
    assert (fresh.replicas, fresh.read("price < 5").count()) == ({}, 50)
    assert not any(INSIDE in n for n in fresh.files("price < 5"))


@pytest.mark.long
def test_what_is_refused(
    spark: SparkSession, made: tuple[str, ManagedTable], pair: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = spark.read.parquet(made[0])
    layout = pair.replicas["second"].layout

    def refused(words: str, frame: object = source, name: str = "third", to: str = pair.path) -> None:
        with pytest.raises(hr.HedgerowError, match=words):
            hr.apply(spark, frame, layout, to, replica=name)  # type: ignore[arg-type]
        assert sorted(pair.replicas) == sorted(ManagedTable.open(spark, pair.path).replicas) == ["second"]
        assert read(pair)

    refused("not the rows of", source.where("id < 1990"))
    refused("not the rows of", source.selectExpr("* EXCEPT (kind)", "'n' AS kind"))
    refused("no column", source.drop("kind"))
    refused("is not empty", name="second")
    refused("made of letters", name="../../elsewhere")
    refused("no table that Hedgerow wrote", to=made[0])
    with monkeypatch.context() as patched:
        patched.setattr(write, "write_first_state", lambda *args: (_ for _ in ()).throw(hr.HedgerowError("killed")))
        refused("killed")
    again = hr.apply(spark, pair.path, layout, pair.path, replica="second", overwrite=True)
    assert read(again)
