"""A table replaces only a table that lies at exactly its place; what is in the way is named, and nothing is changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow.cli import app as shared_by_commands
from hedgerow.cli.commands import app
from hedgerow.core.learning.seconds import RewriteCost
from hedgerow.pilot.decision import Decision
from hedgerow.pilot.decision_notes import note
from hedgerow.pipeline.calibrated_cost import calibrated_cost, save_cost
from hedgerow.pipeline.learned_tables import LearnedTables
from hedgerow.spark.storage.delta_log import has_delta
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.query_log import QueryLog
from tests.support.folder_contents import ROWS, contents, outside, write_kinds
from tests.support.past_queries import past_query

REPLACED = ["plain", "partitioned", "managed", "with a replica"]


@pytest.fixture(scope="module")
def kinds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hr.Learned]:
    folder = tmp_path_factory.mktemp("kinds")
    return folder, write_kinds(spark, folder, has_delta(spark))


@pytest.fixture
def learned(kinds: tuple[Path, hr.Learned]) -> hr.Learned:
    return kinds[1]


@pytest.fixture
def lake(kinds: tuple[Path, hr.Learned], tmp_path: Path) -> Path:
    """A folder with a table of each kind, a text and a source."""
    shutil.copytree(kinds[0], tmp_path / "lake", symlinks=True)
    shutil.copytree(kinds[0] / "plain", tmp_path / "source")
    (tmp_path / "lake" / "notes.txt").write_text("not a table")
    (tmp_path / "lake" / "empty").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def refused(spark: SparkSession, lake: Path, learned: hr.Learned) -> Callable[..., None]:
    """Expects that a table is not written, in one sentence with these words, and that nothing has changed."""

    def expect(words: str, to: str | Path, source: Any = None, layout: Any = learned, **how: Any) -> None:
        before = contents(lake.parent)
        with pytest.raises(hr.HedgerowError, match=words) as error:
            write = hr.apply_tables if isinstance(layout, LearnedTables) else hr.apply
            write(spark, source or str(lake.parent / "source"), layout, str(to), **{"overwrite": True, **how})
        assert "\n" not in str(error.value)
        assert contents(lake.parent) == before

    return expect


def test_a_table_of_each_kind_is_replaced(spark: SparkSession, lake: Path, learned: hr.Learned) -> None:
    for kind in REPLACED:
        before = outside(contents(lake), kind)
        table = hr.apply(spark, str(lake.parent / "source"), learned, str(lake / kind), overwrite=True)
        assert table.verify()["rows"] == ROWS == spark.read.parquet(str(lake / kind)).count()
        assert outside(contents(lake), kind) == before


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_what_a_folder_holds_beside_a_table(refused: Callable[..., None], lake: Path, step: int) -> None:
    """With some of the names for each kind of table, and all names for some kind; or with all."""
    refused("delta, empty, managed and 6 more", lake)
    refused("a file", lake / "notes.txt")
    refused("other columns than", lake / "of two tables")
    for number, kind in enumerate(REPLACED):
        place, first = lake / kind, number % step
        for name in ("notes.txt", "more.csv", ".git", "data", "a=1.txt")[first::step]:
            (place / name).write_text("theirs")
            refused(name, place)
            (place / name).unlink()
        for name in ("sub", "more.parquet", "_temporary", ".hidden")[first::step]:
            (place / name).mkdir()
            refused(name, place)
            (place / name).rmdir()
        for name in ("part-9.parquet", "v=9", "nowhere")[first::step]:
            (place / name).symlink_to("/nowhere" if name == "nowhere" else lake / "notes.txt")
            refused(f"the link {name}", place)
            (place / name).unlink()
        (place / "text.parquet").write_text("no Parquet")
        refused("text.parquet .not Parquet", place)
        (place / "text.parquet").unlink()
    inside = lake / "partitioned" / "v=1" / "notes.txt"
    inside.write_text("theirs")
    refused("v=1/notes.txt", lake / "partitioned")
    (lake / "managed" / "v=1").mkdir()
    refused("v=1", lake / "managed")  # a table of Hedgerow's has no partitions
    for name in ("_hedgerow/notes.txt", "_hedgerow/replicas/second/notes.txt", "_hedgerow/log"):
        (lake / "with a replica" / name).write_text("theirs")
        refused(name, lake / "with a replica")
        (lake / "with a replica" / name).unlink()


def test_a_delta_table_stays(delta: SparkSession, refused: Callable[..., None], lake: Path) -> None:
    for kind in ("delta", "managed delta"):
        for overwrite in (True, False):
            refused("in place, or name another path", lake / kind, overwrite=overwrite)
            refused("inside of the table", lake / kind / "v=1", overwrite=overwrite)
        refused("inside of the table", lake / kind / "_delta_log")


def test_inside_and_around(refused: Callable[..., None], lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed = lake / "managed"
    for inside in ("new", "_hedgerow", "_hedgerow/new", "_hedgerow/calibrate-mine", "a/b/c"):
        refused("inside of the table", managed / inside, overwrite=False)
        refused("inside of the table", managed / inside)
    refused("the source .*/lake/plain lies in it", lake, str(lake / "plain"))
    refused("the source .*/v=1 lies in it", lake / "partitioned", str(lake / "partitioned" / "v=1"))
    refused("inside of the source", lake / "partitioned" / "v=1", str(lake / "partitioned"))
    [file] = (lake / "plain").glob("*.parquet")
    refused("lies in it", lake / "plain", [str(file)])
    refused("root of a file system", "/")
    refused("home folder|working directory", Path.home())
    monkeypatch.chdir(lake / "empty")
    refused("is the working directory", lake / "empty", overwrite=False)
    refused("around the working directory", lake)


@pytest.mark.long
def test_every_spelling_of_a_place(
    spark: SparkSession, refused: Callable[..., None], lake: Path, learned: hr.Learned
) -> None:
    (lake / "link").symlink_to(lake)
    relative = os.path.relpath(lake, spark._jvm.java.lang.System.getProperty("user.dir"))  # type: ignore[union-attr]
    for start in (str(lake), f"file:{lake}", f"file://{lake}", f"{lake}//", f"{lake}/empty/..", relative):
        refused("the source .*/lake/plain lies in it", start, str(lake / "link" / "plain"))
        refused("the source .*/lake/plain lies in it", f"{start}/link", str(lake / "plain"))
        refused("inside of the table", f"{start}/managed/_hedgerow/../new")
        table = hr.apply(spark, str(lake / "plain"), learned, f"{start}/plain/", overwrite=True)
        assert table.verify()["rows"] == ROWS


@pytest.mark.parametrize("kind", ["managed", *(pytest.param(k, marks=pytest.mark.long) for k in ("plain", "nowhere"))])
def test_a_link_stays(spark: SparkSession, lake: Path, learned: hr.Learned, kind: str) -> None:
    link, before = lake / "link", outside(contents(lake), kind)
    link.symlink_to(kind)
    table = hr.apply(spark, str(lake.parent / "source"), learned, str(link), overwrite=True)
    assert link.readlink() == Path(kind) and table.verify()["rows"] == ROWS
    assert hr.table(spark, str(lake / kind)).verify()["rows"] == ROWS
    link.unlink()
    assert outside(contents(lake), kind) == before
    # A run that was killed between its two moves left the table beside its place: the link finds it.
    (lake / kind).rename(lake / f".{kind}.hedgerow-old")
    link.symlink_to(kind)
    assert hr.table(spark, str(link)).verify()["rows"] == ROWS


def test_what_is_known_of_queries_and_rewrites_survives(spark: SparkSession, lake: Path, learned: hr.Learned) -> None:
    """Also where a run was killed after its table was in place, and before these were moved."""
    place, side = lake / "plain", lake / "plain" / "_hedgerow"
    log, source = QueryLog.of(spark, str(place)), str(lake.parent / "source")
    log.append([past_query("v < 3", 1, 1)])
    note(Folder(spark, str(place)), Decision("nothing", ("too soon",), search_seconds=1.0))
    note(Folder(spark, str(place)), Decision("nothing", ("no news",)))
    save_cost(Folder(spark, str(place)), RewriteCost(1.0, 2.0, 3.0))
    hr.apply(spark, source, learned, str(place), overwrite=True)
    shutil.copytree(place, lake / ".plain.hedgerow-old")
    for name in ("log", "decisions"):
        shutil.rmtree(side / name)
    (side / "rewrite_cost.json").unlink()
    log.append([past_query("v < 3", 2, 2)])
    note(Folder(spark, str(place)), Decision("nothing", ("too small",)))  # in place of "no news"
    hr.apply(spark, source, learned, str(place), overwrite=True)
    assert log.frame().count() == 2
    assert {d.reasons for d in hr.decisions(spark, str(place))} == {("too soon",), ("too small",)}
    assert calibrated_cost(Folder(spark, str(place))) == RewriteCost(1.0, 2.0, 3.0)
    assert not (lake / ".plain.hedgerow-old").exists()


def test_what_another_run_moved_aside_is_kept(refused: Callable[..., None], lake: Path) -> None:
    (lake / "managed").rename(lake / ".plain.hedgerow-old")
    refused("has files that another run moved aside", lake / "plain")


def test_a_file_that_came_meanwhile(
    spark: SparkSession, lake: Path, learned: hr.Learned, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hedgerow.tables.parquet import write

    real = write.write_first_state
    for name in ("notes.txt", "part-other.parquet"):
        came = lake / "plain" / name

        def late(*args: Any, came: Path = came) -> None:
            came.write_text("theirs")
            real(*args)

        monkeypatch.setattr(write, "write_first_state", late)
        before = contents(lake)
        with pytest.raises(hr.HedgerowError, match="was changed meanwhile"):
            hr.apply(spark, str(lake.parent / "source"), learned, str(lake / "plain"), overwrite=True)
        assert contents(lake) == {**before, f"plain/{name}": b"theirs"}
        came.unlink()


@pytest.mark.parametrize("kind", ["managed", "new"])
def test_another_run_that_writes_there_too(
    spark: SparkSession, lake: Path, learned: hr.Learned, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Neither deletes or takes over what the other one has written: the first to end stays, whole."""
    from hedgerow.tables.parquet import write

    source, place, real = str(lake.parent / "source"), str(lake / kind), write.write_first_state

    def late(*args: Any) -> None:
        monkeypatch.setattr(write, "write_first_state", real)
        hr.apply(spark, source, learned, place, overwrite=True)
        real(*args)

    monkeypatch.setattr(write, "write_first_state", late)
    before = outside(contents(lake), kind)
    with pytest.raises(hr.HedgerowError, match="was changed meanwhile"):
        hr.apply(spark, source, learned, place, overwrite=True)
    assert outside(contents(lake), kind) == before
    assert hr.table(spark, place).verify()["rows"] == spark.read.parquet(place).count() == ROWS


def test_several_tables(spark: SparkSession, refused: Callable[..., None], lake: Path, learned: hr.Learned) -> None:
    """All places are looked at before the first table is written."""
    source = str(lake.parent / "source")
    layouts = LearnedTables({name: learned for name in ("plain", "managed", "delta", "new", "empty")})

    def both(first: str, second: str) -> dict[str, str]:
        return {first: source, second: source}

    (lake / "managed" / "notes.txt").write_text("theirs")
    refused("notes.txt", lake, both("plain", "managed"), layouts)
    refused("is not empty", lake, both("new", "plain"), layouts, overwrite=False)
    if has_delta(spark):
        refused("in place, or name another", lake, both("new", "delta"), layouts)
    refused("the place of empty, which is read", lake, {"plain": source, "empty": str(lake / "plain")}, layouts)
    refused("inside of the table", lake / "managed", both("new", "plain"), layouts)
    (lake / "new").symlink_to("plain")
    refused("would lie in one place", lake, both("new", "plain"), layouts)
    (lake / "new").unlink()
    before = contents(lake)
    hr.apply_tables(spark, both("new", "plain"), layouts, str(lake), overwrite=True)
    assert outside(outside(contents(lake), "new"), "plain") == outside(before, "plain")
    assert {n: hr.table(spark, str(lake / n)).verify()["rows"] for n in ("new", "plain")} == {
        "new": ROWS,
        "plain": ROWS,
    }


def test_the_command(
    spark: SparkSession, lake: Path, learned: hr.Learned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr(shared_by_commands, "_session", lambda options: nullcontext(spark))
    layout = tmp_path / "layout.json"
    learned.save(layout)
    before = contents(lake)

    def run(source: Path, to: Path) -> Any:
        return CliRunner().invoke(app, ["apply", str(source), str(layout), "--to", str(to), "--overwrite"])

    words = {lake: "lies in it", **({lake / "delta": "in place"} if has_delta(spark) else {})}
    for to, said in words.items():
        refused = run(lake / "plain", to)
        assert refused.exit_code == 1 and refused.stdout == "" and said in refused.stderr
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
        assert contents(lake) == before
    (lake / "link").symlink_to("plain")
    assert run(tmp_path / "source", lake / "link").exit_code == 0
    assert (lake / "link").is_symlink() and hr.table(spark, str(lake / "plain")).verify()["rows"] == ROWS
