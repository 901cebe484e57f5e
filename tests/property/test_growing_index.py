"""An index that grows by appends, beside one index of all files: with joined parts, readers, crashes and other writers.

No Spark: the side folder is a folder of the local disk, in which every write may be the last one of a run.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.data.counted_folder import CountedFolder, Traffic
from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import only
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import And, Compare, Or, Predicate, col, lit
from hedgerow.core.pruning.block_stats import Stats, collect
from hedgerow.core.pruning.combine_stats import concat
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.write.writing import Writing
from hedgerow.tables import operations
from hedgerow.tables.entry import Entry
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.part import join_parts, parts_of, with_joined_appends, write_layout, write_part
from hedgerow.tables.state import TableState, newest_state, operation, read_state, update_state

NOW = {"spark.hedgerow.lookups": "false"}
FIELDS = tuple({"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("k", "v"))
ROWS_OF_A_FILE, OLD = 4, 3 * 24 * 3600
FEWEST_IN_STATE, MOST_IN_STATE = 8, 16


@pytest.fixture(autouse=True)
def few_operations_in_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "FEWEST_IN_STATE", FEWEST_IN_STATE)
    monkeypatch.setattr(operations, "MOST_IN_STATE", MOST_IN_STATE)


class Killed(BaseException):
    """The process is dead: nothing of it tidies up."""


@dataclass(frozen=True)
class FragileFolder(CountedFolder):
    """A folder in which a run may be killed before each change, and others may write before a state is written."""

    kills: list[int] = field(default_factory=list)  # the number of changes until the kill
    before_state: list[Callable[[], object]] = field(default_factory=list)

    def write(self, name: str, data: bytes, new: bool = False) -> bool:
        if new and self.before_state:
            self.before_state.pop()()
        self._may_be_killed()
        return super().write(name, data, new)

    def delete(self, name: str = "") -> None:
        self._may_be_killed()
        super().delete(name)

    def _may_be_killed(self) -> None:
        if self.kills:
            self.kills[0] -= 1
            if self.kills[0] < 0:
                raise Killed


@dataclass
class All:
    """The slow reference: the list of all files with one index, and what was done."""

    names: list[str] = field(default_factory=list)
    stats: list[Stats] = field(default_factory=list)
    writes: list[tuple[str, int]] = field(default_factory=list)
    operations: list[Mapping[str, Any]] = field(default_factory=list)

    def copy(self) -> All:
        return All(*(list(values) for values in vars(self).values()))

    def add(self, known: KnownFiles, stats: Stats, done: Mapping[str, Any]) -> None:
        self.names += known.names
        self.stats.append(stats)
        self.writes.append((str(done["part"]), len(known)))
        self.operations.append(done)


class Table:
    """A table of invented files, which has only a side folder."""

    def __init__(self, place: Path, seed: int, alike: bool = False) -> None:
        spark: Any = None
        place.mkdir()
        self.side = FragileFolder(spark, str(place), Traffic())
        self.r, self.alike, self.files, self.all = Random(seed), alike, 0, All()
        first = Entry("", "", "", FIELDS, NOW, Writing(), (col("k"), col("v")), Checksum(0, 0, 0))
        self.first = write_layout(self.side, first, TreeLayout((), ()))
        entry, known, stats = self.part(5, self.first)
        done = operation("apply", 1, entry)
        update_state(self.side, "parquet", lambda state, _: replace(state, parts=(entry,), operations=(done,)))
        self.all.add(known, stats, done)

    def part(self, files: int, entry: Entry) -> tuple[Entry, KnownFiles, Stats]:
        """Write a part of new files."""
        names = tuple(f"part-{self.files + i:05d}-x.parquet" for i in range(files))
        self.files += files
        near = self.r.randrange(1000)
        values = [self.r.choice([None, *range(near, near + 20)]) for _ in range(files * ROWS_OF_A_FILE)]
        rows = {col("k"): pa.array(values, pa.int64()), col("v"): pa.array(values[::-1], pa.int64())}
        stats = collect(rows, entry=np.repeat(np.arange(files), ROWS_OF_A_FILE), entries=files)
        if not self.alike and self.r.random() < 0.1:
            entry = replace(entry, statistics=entry.statistics[:1])
        index = only(BlockIndex(stats), entry.statistics)
        known = KnownFiles(names, np.full(files, 9), stats.rows, np.arange(files), {"k": np.arange(files)})
        return write_part(self.side, entry, index, known), known, index.blocks

    def append(self, files: int) -> None:
        entry, known, stats = self.part(files, replace(self.first, id="", write=""))
        done = operation("append", self.files, entry)

        def grown(state: TableState, _: int) -> TableState:
            return with_joined_appends(self.side, state.with_part(entry, done))

        try:
            update_state(self.side, "parquet", grown)
        finally:
            listed = read_state(self.side, newest_state(self.side))
            if any(one.get("part") == entry.id for one in listed.operations):
                self.all.add(known, stats, done)

    def append_and_die(self, files: int) -> None:
        self.side.kills.append(self.r.randrange(12))
        try:
            self.append(files)
        except Killed:
            pass
        finally:
            self.side.kills.clear()

    def grow_old(self) -> None:
        """Let all files be some days old."""
        for path in Path(self.side.root).iterdir():
            os.utime(path, (path.stat().st_mtime - OLD, path.stat().st_mtime - OLD))

    def check(self, state: TableState, expected: All) -> None:
        """Compare a state with the reference."""
        parts = parts_of(self.side, state.parts)
        assert [name for part in parts for name in part.known.names] == expected.names
        assert [write for part in parts for write in part.known.writes] == expected.writes
        assert state.last_write == expected.writes[-1][0]
        assert sum(part.entry.files for part in parts) == len(expected.names)
        assert list(state.all_operations(self.side)) == expected.operations
        assert len(state.operations) >= min(FEWEST_IN_STATE, len(expected.operations))
        [joined] = join_parts(parts, NOW, parts[-1].entry.columns)
        reference = BlockIndex(concat(expected.stats))
        for _ in range(3):
            p = condition(self.r)
            assert (joined.index.to_open(p) == reference.to_open(p)).all(), p


def condition(r: Random) -> Predicate:
    def one() -> Predicate:
        return Compare(col(r.choice("kv")), r.choice(("<", "=", ">", "<>")), lit(r.randrange(1020)))

    return r.choice((And, Or))((one(), one())) if r.random() < 0.5 else one()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 30))])
def test_random_histories(tmp_path: Path, seed: int) -> None:
    """A reader may open any of the kept states at any time, also while parts are joined."""
    table, readers = Table(tmp_path / "side", seed), list[tuple[int, TableState, All]]()
    for _ in range(40):
        match table.r.randrange(8):
            case 0:
                table.append_and_die(table.r.randrange(1, 5))
            case 1:
                table.side.before_state.append(lambda: table.append(1))
                table.append(table.r.randrange(1, 5))
            case 2:
                table.grow_old()
            case _:
                table.append(table.r.randrange(1, 5))
        number = newest_state(table.side)
        state = read_state(table.side, number)
        readers = [reader for reader in readers if number - reader[0] < 10]  # so many states are kept
        readers.append((number, state, table.all.copy()))
        for at in {len(readers) - 1, table.r.randrange(len(readers))}:
            table.check(*readers[at][1:])
    table.grow_old()
    for _ in range(10):
        table.append(1)
    kept = [read_state(table.side, int(path.stem[6:])) for path in Path(table.side.root).glob("state-*.json")]
    assert len(kept) == 10
    left = {path.name for path in Path(table.side.root).iterdir() if not path.name.startswith("state-")}
    assert sum(name not in set().union(*(one.files_used for one in kept)) for name in left) < 60, "of this day"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_damaged_and_mixed_up_files(tmp_path: Path, seed: int) -> None:
    """A file that is cut, changed, gone or another's is refused."""
    table = Table(tmp_path / "side", seed)
    for _ in range(30):
        table.append(table.r.randrange(1, 5))
    state = read_state(table.side, newest_state(table.side))
    names = sorted(name for name in state.files_used if not name.startswith("layout-"))
    assert {name.partition("-")[0] for name in names} == {"index", "files", "operations"}
    for name in names:
        path = Path(table.side.root, name)
        whole = path.read_bytes()
        at = table.r.randrange(len(whole))
        other = table.r.choice(
            [n for n in names if n != name and n.partition("-")[0] == name.partition("-")[0]] or names
        )
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], None):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            with pytest.raises(HedgerowError):
                table.check(state, table.all)
        if other != name:
            path.write_bytes(Path(table.side.root, other).read_bytes())
            with pytest.raises(HedgerowError):
                table.check(state, table.all)
        path.write_bytes(whole)
    table.check(state, table.all)


@pytest.mark.parametrize("sizes", ["equal", "random", "falling", "rising"])
def test_the_cost_of_an_append_does_not_grow(tmp_path: Path, sizes: str) -> None:
    """Each file is listed again at most so often as the logarithm says; a state has at most so many parts."""
    table, appends = Table(tmp_path / "side", 1, alike=True), 100
    listed, seen, largest = Counter[str](), set[str](), 0
    for i in range(appends):
        files = {
            "equal": 2,
            "random": table.r.randrange(1, 30),
            "falling": 1 + (appends - i) // 10,
            "rising": 1 + i // 10,
        }
        table.append(files[sizes])
        for path in Path(table.side.root).glob("files-*"):
            if path.name not in seen:
                seen.add(path.name)
                listed.update(KnownFiles.of_bytes(path.read_bytes(), "").names)
        largest = max(largest, Path(table.side.root, f"state-{newest_state(table.side)}.json").stat().st_size)
    state = read_state(table.side, newest_state(table.side))
    appended = len(table.all.names) - 5
    most = 2 + math.log(appended, 1.5)
    assert max(listed.values()) <= (1 + math.ceil(math.log2(appends)) if sizes == "equal" else most)
    assert sum(listed.values()) <= appended * (2 + math.log2(appends)), "on average, the logarithm of base two"
    assert len(state.parts) <= 2 + math.log2(appended)

    def size(one: TableState) -> int:
        return len(one.to_bytes())

    first = replace(state, parts=state.parts[:1], operations=(), earlier=())
    operation_bytes = (size(state) - size(replace(state, operations=()))) / len(state.operations)
    assert largest <= (2 + math.log2(appended)) * size(first) + (MOST_IN_STATE + 5) * operation_bytes
    traffic = table.side.traffic
    assert traffic.read <= 3 * appends * largest + sum(traffic.written.values())


def test_operations_of_long_ago(tmp_path: Path) -> None:
    table = Table(tmp_path / "side", 1)
    for _ in range(3 * MOST_IN_STATE):
        table.append(1)
    number, part = newest_state(table.side), table.all.operations[7]["part"]
    update_state(table.side, "parquet", lambda state, _: state.with_version(part, 1234, table.side))
    state = read_state(table.side, number + 1)
    changed = [{**o, "version": 1234} if o["part"] == part else o for o in table.all.operations]
    assert list(state.all_operations(table.side)) == changed
    assert len(state.operations) == FEWEST_IN_STATE
    update_state(table.side, "parquet", lambda state, _: state.without_part(part, table.side))
    state = read_state(table.side, number + 2)
    assert list(state.all_operations(table.side)) == [o for o in changed if o["part"] != part]


def test_a_part_of_two_states_is_read_once(tmp_path: Path) -> None:
    table = Table(tmp_path / "side", 1, alike=True)
    table.append(9)
    opened = parts_of(table.side, read_state(table.side, newest_state(table.side)).parts)
    join_parts(opened, NOW, opened[-1].entry.columns)
    table.append(2)
    state = read_state(table.side, newest_state(table.side))
    before = table.side.traffic.reads
    parts = parts_of(table.side, state.parts, opened)
    join_parts(parts, NOW, parts[-1].entry.columns)
    assert len(parts) == 3 and table.side.traffic.reads == before + 2, "the list and the index of the new part"
    table.check(state, table.all)
