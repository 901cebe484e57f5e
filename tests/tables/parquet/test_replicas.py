"""Copies of a table in two layouts: the same rows whichever is read, and none is read that is not up to date."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hedgerow as hr
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables import managed
from hedgerow.tables.cheapest_copy import Copies
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet import append, write
from tests.support.answers import answer, answers, ask_all
from tests.support.checked_table import World, forget, register
from tests.support.events_table import EVENTS, conditions, write_events
from tests.support.random_queries import questions
from tests.support.things_table import write_things
from tests.support.workload_conditions import about

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSIDE = "_hedgerow/replicas/second"


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Z-ordered by what is filtered most; the second a tree for the rest."""
    source = write_events(spark, str(tmp_path_factory.mktemp("plain") / "events.parquet"), rows=6_000)
    workload = hr.Workload.from_sql([f"SELECT id FROM events WHERE {c}" for c in conditions(1, 40)])
    first = hr.learn(spark, source, workload, "zorder", hr.LearnOptions(block_rows=300, sample_rows=3_000))
    table = hr.apply(spark, source, first, str(tmp_path_factory.mktemp("ours") / "events"))
    alone = table.score(workload)
    second = hr.learn(
        spark,
        source,
        workload,
        "qdtree",
        hr.LearnOptions(block_rows=300, sample_rows=3_000, recurrence=1),
        given=[table],
    )
    told = second.provenance["given"]
    assert told["together"] <= told["alone"] == pytest.approx(alone.rows_read)
    table = hr.apply(spark, source, second, table.path, replica="second")
    assert table.score(workload).bytes_read < alone.bytes_read
    kinds = ("IF(id % 10 = 0, NULL, CAST(id * 3 AS INT)) AS code", "concat('n', id % 9) AS label", "id % 50 AS size")
    spark.range(400).selectExpr(*kinds).createOrReplaceTempView("kinds")
    yield World(spark, table, source, register(spark, table, source), "kinds")
    forget(spark)


@pytest.mark.long
def test_routed_queries(events: World) -> None:
    places = set()
    for i, question in enumerate(questions(EVENTS, 7, 16)):
        events.ask(replace(question, scans=None), name=i)
        names = hr.route(
            events.spark, question.sql.replace("$E", f"parquet.`{events.table.path}`").replace("$D", "kinds")
        )
        places |= {INSIDE in name for name in names.inputFiles()}
    assert places == {True, False}, "only one of the copies was ever read"


@pytest.mark.long
def test_reads(events: World) -> None:
    asked = conditions(3, 8)
    events.check_reads(asked)
    own, copies = events.table.indexed(), Copies.of(events.table)
    taken = [copies.cheapest(about(c, events.table.schema), None) for c in asked]
    for c, found in zip(asked, taken, strict=True):
        opened = own.choose(about(c, events.table.schema)).opened
        assert found.known.bytes_read(None, found.opened) <= own.files.bytes_read(None, opened), c
    assert any(found.table.path.endswith(INSIDE) for found in taken)


@pytest.mark.long
def test_verify_and_describe(events: World) -> None:
    (told,) = events.table.describe()["replicas"]
    assert (told["name"], told["layout"], told["learner"], told["up_to_date"]) == ("second", "tree", "qdtree", True)
    assert events.table.verify()["replicas"] == {"second": "as the table"}


# --- a small table, by `id` and by `price` ---------------------------------------------------------

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
    assert told["up_to_date"] == used
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
