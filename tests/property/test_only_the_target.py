"""Random trees of tables, folders, texts and links, and whatever writes: only the files of its own table change.

What is refused changes nothing. A table is replaced just where the tree says that one lies, or nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.pipeline.learned_tables import LearnedTables
from hedgerow.spark.storage.delta_log import has_delta
from tests.support.folder_contents import KINDS, ROWS, contents, outside, write_kinds

CASES = 400 if os.environ.get("HEDGEROW_HYPOTHESIS") == "full" else 12
NAMES = ["a", "b", "c", "v=1", "d.parquet", "_e", "f g"]
REPLACEABLE = ("new", "empty", "plain", "partitioned", "managed", "with a replica")
STRANGERS = ["notes.txt", "data.csv", "sub", "_temporary", "link", "part-1.parquet"]


@dataclass
class Tree:
    """What lies below a folder: the kind of each place that was made, and what no table there wrote."""

    root: Path
    kinds: dict[str, str] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)

    def grow(self, r: Random, templates: Path, at: str = "", depth: int = 0) -> None:
        """Adds a few places to a folder."""
        for name in r.sample(NAMES, r.randint(1, 4 if depth else 5)):
            place, path = f"{at}/{name}".lstrip("/"), self.root / at / name
            kind = r.choice([*KINDS, "empty", "text", "link", "folder"])
            if kind in KINDS and not (templates / kind).exists():
                kind = "plain"
            self.kinds[place] = kind
            match kind:
                case "empty":
                    path.mkdir()
                case "text":
                    path.write_text(f"text of {place}")
                case "link":
                    others = [p for p in self.kinds if p != place]
                    path.symlink_to(self.root / r.choice([*others, "nowhere"]))
                case "folder":
                    path.mkdir()
                    if depth < 2:
                        self.grow(r, templates, place, depth + 1)
                    if not any(path.iterdir()):
                        self.kinds[place] = "empty"
                case _:
                    shutil.copytree(templates / kind, path)
                    if r.random() < 0.25:
                        self._add_stranger(r, place)

    def _add_stranger(self, r: Random, place: str) -> None:
        name = r.choice(STRANGERS)
        folders = [place, *(f"{place}/v={v}" for v in range(6)), f"{place}/_hedgerow"]
        inside = r.choice([f for f in folders if (self.root / f).is_dir()])
        path = self.root / inside / name
        match name:
            case "sub" | "_temporary":
                path.mkdir()
            case "link":
                path.symlink_to(self.root)
            case _:
                path.write_text("theirs")
        self.strangers.add(f"{inside}/{name}")

    def kind_of(self, place: str) -> str:
        """The kind of a place, through links; 'polluted' if a stranger lies in a table there, 'other' if unknown."""
        path = (self.root / place).resolve()
        if not path.is_relative_to(self.root) or path == self.root:
            return "other"
        real = str(path.relative_to(self.root))
        if any(s == real or s.startswith(f"{real}/") for s in self.strangers):
            return "polluted"
        around = [self.kinds.get(str(p)) for p in Path(real).parents]
        if any(kind in KINDS for kind in around):
            return "inside"
        return self.kinds.get(real, "other" if path.exists() else "new")


@pytest.fixture(scope="module")
def templates(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, hr.Learned]:
    folder = tmp_path_factory.mktemp("templates")
    return folder, write_kinds(spark, folder, has_delta(spark))


def spelled(r: Random, path: Path) -> str:
    """A path as somebody may write it."""
    return r.choice(
        [str(path), f"{path}/", f"file:{path}", f"{path.parent}/x/../{path.name}", f"{path.parent}//{path.name}"]
    )


def attempt(work: Callable[[], object]) -> str | None:
    """The sentence by which the work is refused."""
    try:
        work()
        return None
    except hr.HedgerowError as error:
        assert "\n" not in str(error)
        return str(error)


def write_a_table(spark: SparkSession, r: Random, tree: Tree, templates: Path, learned: hr.Learned) -> str:
    """One `apply` to a random place of the tree, and the check of all that lies around it."""
    place = r.choice([*tree.kinds, *(f"{p}/new" for p in tree.kinds), "new", ""])
    kind, overwrite = tree.kind_of(place) if place else "other", r.random() < 0.8
    inner = [p for p, k in tree.kinds.items() if k == "plain" and tree.kind_of(p) == "plain"]
    source = str(tree.root / r.choice(inner)) if inner and r.random() < 0.3 else str(templates / "plain")
    before = contents(tree.root)
    to = spelled(r, tree.root / place) if place else str(tree.root)
    said = attempt(lambda: hr.apply(spark, source, learned, to, overwrite=overwrite))
    told = f"apply {source} to {to} ({kind}), overwrite={overwrite}: {said}"
    if said is not None:
        assert contents(tree.root) == before, told
        unfit = overwrite or kind in ("new", "empty")
        around = (tree.root / place).resolve()
        is_around_source = Path(source) != around and Path(source).is_relative_to(around)
        if kind in REPLACEABLE and unfit and not is_around_source:
            assert "cannot" in said or "could not" in said, f"refused without need: {told}"
        return told
    assert kind in REPLACEABLE or kind == "inside", told
    own = str((tree.root / place).resolve().relative_to(tree.root))
    assert {**outside(contents(tree.root), own), **parents_of(own)} == {**outside(before, own), **parents_of(own)}, told
    assert hr.table(spark, str(tree.root / place)).verify()["rows"] == ROWS, told
    return told


def parents_of(place: str) -> dict[str, str]:
    return {str(p): "/" for p in Path(place).parents if str(p) != "."}


def write_several(spark: SparkSession, r: Random, tree: Tree, templates: Path, learned: hr.Learned) -> str:
    place = r.choice([*(p for p, k in tree.kinds.items() if k == "folder"), ""])
    names, overwrite = r.sample(["a", "b", "c"], 2), r.random() < 0.7
    layouts = LearnedTables(dict.fromkeys(names, learned))
    sources = dict.fromkeys(names, str(templates / "plain"))
    kinds = [tree.kind_of(f"{place}/{name}".lstrip("/")) for name in names]
    before = contents(tree.root)
    said = attempt(lambda: hr.apply_tables(spark, sources, layouts, str(tree.root / place), overwrite=overwrite))
    told, after = f"apply {names} to {place}, overwrite={overwrite}: {said}", contents(tree.root)
    if said is not None:
        assert after == before, told
        return told
    assert set(kinds) <= set(REPLACEABLE), told
    for name in names:
        path = (tree.root / place / name).resolve()
        own = str(path.relative_to(tree.root))
        before, after = ({**outside(found, own), **parents_of(own)} for found in (before, after))
    assert after == before, told
    return told


def change_a_table(spark: SparkSession, r: Random, tree: Tree, templates: Path, learned: hr.Learned) -> str:
    """A verb of a managed table: nothing outside of it changes, nor what others put into it."""
    managed = [p for p, k in tree.kinds.items() if k in ("managed", "with a replica", "managed delta")]
    if not managed:
        managed = ["z"]
        tree.kinds["z"] = "with a replica"
        shutil.copytree(templates / "with a replica", tree.root / "z")
    place = r.choice(managed)
    path, rows = str(tree.root / place), spark.range(3).selectExpr("id", "id % 6 AS v")
    workload = hr.Workload.from_sql(["SELECT * FROM t WHERE id % 5 = 1"])
    verbs: dict[str, Callable[[], Any]] = {
        "append": lambda: hr.table(spark, path).append(rows),
        "append of wrong rows": lambda: hr.table(spark, path).append(rows.drop("v")),
        "repair": lambda: hr.table(spark, path).repair(),
        "relearn": lambda: hr.table(spark, path).relearn(workload),
        "rollback": lambda: hr.table(spark, path).rollback(),
        "refresh": lambda: hr.table(spark, path).refresh_replicas(),  # type: ignore[attr-defined]
        "in place": lambda: hr.apply(spark, path, learned),
        "in place of no file": lambda: hr.apply(spark, path, learned, where=["no-file"]),
        "replica": lambda: hr.apply(spark, path, learned, path, replica="second"),
        "replica again": lambda: hr.apply(spark, path, learned, path, replica="second", overwrite=True),
        "replica of other rows": lambda: hr.apply(spark, rows, learned, path, replica="second", overwrite=True),
    }
    verb = r.choice([v for v in verbs if v != "refresh" or tree.kinds[place] != "managed delta"])
    before = contents(tree.root)
    said = attempt(verbs[verb])
    told, after = f"{verb} of {place} ({tree.kinds[place]}): {said}", contents(tree.root)
    assert outside(after, place) == outside(before, place), told
    assert {name: after.get(name) for name in tree.strangers} == {name: before.get(name) for name in tree.strangers}, (
        told
    )
    return told


WORK = [(write_a_table, 6), (write_several, 2), (change_a_table, 2)]


@pytest.mark.parametrize("seed", range(4))
def test_only_the_target_changes(
    spark: SparkSession, templates: tuple[Path, hr.Learned], tmp_path: Path, seed: int
) -> None:
    r = Random(seed)
    done = []
    for case in range(CASES // 4):
        tree = Tree(tmp_path / f"tree{case}")
        tree.root.mkdir()
        tree.grow(r, templates[0])
        [work] = r.choices([work for work, _ in WORK], [weight for _, weight in WORK])
        done.append(work(spark, r, tree, *templates))
        shutil.rmtree(tree.root)
    print(*done, sep="\n")
    assert list(tmp_path.iterdir()) == []
