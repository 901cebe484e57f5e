"""Parts of a table: joined when appends are listed, and joined again when the table is opened."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hedgerow as hr
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import only
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Compare, Predicate, col, lit
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT, Stats, collect
from hedgerow.core.pruning.combine_stats import repeat
from hedgerow.spark.compute.checksum import checksum
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.part import join_parts, parts_of, with_joined_appends, write_layout, write_part
from hedgerow.tables.state import TableState, newest_state, operation, read_state, update_state
from tests.support.delta_tables import more
from tests.support.things_table import FILES as FILES_OF_THINGS
from tests.support.things_table import by_id, write_things

FILES, ROWS_OF_A_FILE = 90, 6
NOTED = Compare(col("v"), "<", lit(3))


def conditions(r: Random) -> list[Predicate]:
    ops = ("<", "<=", "=", ">", ">=", "<>")
    return [NOTED, *(Compare(col(r.choice("kv")), r.choice(ops), lit(r.randrange(-5, 60))) for _ in range(20))]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, KnownFiles, Stats]:
    """A folder of small files, their list, and the statistics of each."""
    folder, r = tmp_path_factory.mktemp("parts") / "t", Random(1)
    folder.mkdir()
    rows = pa.table({n: [r.choice([None, *range(50)]) for _ in range(FILES * ROWS_OF_A_FILE)] for n in ("k", "v")})
    names = [f"part-{i:05d}-x.parquet" for i in range(FILES)]
    for i, name in enumerate(names):
        pq.write_table(rows.slice(i * ROWS_OF_A_FILE, ROWS_OF_A_FILE), folder / name)
    outcomes = [N_BIT if v is None else T_BIT if v < 3 else F_BIT for v in rows["v"].to_pylist()]
    entry = np.repeat(np.arange(FILES), ROWS_OF_A_FILE)
    columns = {col(name): rows[name] for name in ("k", "v")}
    stats = collect(columns, {NOTED: np.array(outcomes, np.uint8)}, entry, FILES)
    sizes = np.array([(folder / name).stat().st_size for name in names], np.int64)
    return folder, KnownFiles(tuple(names), sizes, stats.rows, np.arange(FILES), {}), stats


def test_many_appends(spark: SparkSession, files: tuple[Path, KnownFiles, Stats]) -> None:
    """Thirty appends become a few parts, which say of every file what its own statistics say."""
    folder, known, stats = files
    side, r = Folder(spark, f"{folder}/_hedgerow"), Random(2)
    fields = tuple(json.loads(spark.read.parquet(str(folder)).schema.json())["fields"])
    first = Entry("", "", "", fields, settings(spark), Writing(), (col("k"), col("v"), NOTED))
    first = write_layout(side, first, TreeLayout((), ()))
    cuts = [0, *sorted(r.sample(range(10, FILES), 29)), FILES]
    for number, (start, end) in enumerate(pairwise(cuts)):
        places = list(range(start, end))
        sums = checksum(spark.read.parquet(*(f"{folder}/{known.names[i]}" for i in places)))
        entry = replace(first, checksum=sums) if number == 0 else replace(first, id="", write="", checksum=sums)
        if number % 7 == 6:  # a write that knows less
            entry = replace(entry, statistics=entry.statistics[:2])
        index = only(BlockIndex(repeat(stats, np.array(places))), entry.statistics)
        part = write_part(side, entry, index, known.take(places))

        def listed(state: TableState, number: int, part: Entry = part) -> TableState:
            done = operation("append" if state.parts else "apply", number, part)
            return with_joined_appends(side, replace(state, name="t").with_part(part, done))

        update_state(side, "parquet", listed)
    state = read_state(side, newest_state(side))
    writes = [write for part in parts_of(side, state.parts) for write, _ in part.known.writes]
    assert len(state.operations) == 30 == len(writes) == len(set(writes)) and len(state.parts) < 22
    assert state.parts[0].files == cuts[1], "the first write keeps its files to itself"
    assert [o["part"] for o in state.operations] == writes
    assert [name for part in parts_of(side, state.parts) for name in part.known.names] == list(known.names)
    assert total(state.parts) == checksum(spark.read.parquet(str(folder)))
    table = hr.table(spark, str(folder))
    assert table.verify()["rows_compared"] == FILES * ROWS_OF_A_FILE and len(table.indexed().parts) == 1
    single, joined = BlockIndex(stats), join_parts(table.parts, settings(spark), table.newest.entry.columns)[0].index
    for p in conditions(r):
        opened = table.indexed().choose(p).opened
        assert (opened == joined.to_open(p)).all() and (opened >= single.to_open(p)).all(), p
        assert p == NOTED or (opened == single.to_open(p)).all(), p


def test_parts_of_like_size_are_joined(spark: SparkSession, files: tuple[Path, KnownFiles, Stats]) -> None:
    _, known, stats = files
    side = Folder(spark, f"{files[0].parent}/like/_hedgerow")
    first = write_layout(side, Entry("", "", "", (), {}, Writing(), ()), TreeLayout((), ()))
    state = TableState("parquet", "t", (write_part(side, first, BlockIndex(stats), known),))
    sizes = []
    for i in range(16):
        one = write_part(side, replace(first, id=""), BlockIndex(repeat(stats, np.array([i]))), known.take([i]))
        state = with_joined_appends(side, state.with_part(one, operation("append", None, one)))
        sizes.append([part.files for part in state.parts[1:]])
    assert sizes[:5] == [[1], [2], [2, 1], [4], [4, 1]] and sizes[-1] == [16]
    again = replace(first, id=state.operations[3]["part"])
    assert state.with_part(again, {}) is state, "a write that is tried twice"


def test_an_attached_session_reads_what_an_append_added(
    attached: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = by_id(
        attached, write_things(attached, str(tmp_path / "source")), str(tmp_path / "things"), ["number < 100"]
    )
    names, usual = list[str](), Folder.read

    def read(folder: Folder, name: str) -> bytes:
        names.append(name)
        return usual(folder, name)

    def ask() -> tuple[int, set[str]]:
        attached.catalog.refreshByPath(table.path)
        names.clear()
        counted = attached.read.parquet(table.path).where("number < 100").count()
        [seen] = hr.last_query(attached)
        assert seen.files_opened is not None and seen.files_opened < FILES_OF_THINGS
        return counted, {name.partition("-")[0] for name in names}

    monkeypatch.setattr(Folder, "read", read)
    rows, read_first = ask()
    assert read_first == {"state", "files", "index"}
    first = set(table.parts[0].entry.names)
    table.append(more(attached))
    again, _ = ask()
    assert again >= rows and not first & set(names) and sum(name.startswith("index-") for name in names) == 1
