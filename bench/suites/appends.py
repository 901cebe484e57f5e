"""Count the bytes of the index that an append writes and reads after so many others, and that opening a table reads.

An invented table of five numbers, two dates and three texts begins with 1,000 files; each append adds four. No Spark
and no data: only the files in `_hedgerow` are written. These are counted:

    written, read   bytes of the one append with this number; `written_on_average`: of all appends so far
    cold            bytes that a process reads to open the table; `warm`: if it had the table open before this append
    bytes_a_file    of the index of all columns, of the list of files, and of the index of each column

`ratio` is `written_on_average` beside what the append's own index and list take.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from bench.data.counted_folder import CountedFolder
from bench.data.many_files import of_few, of_span
from bench.options import Options
from bench.record import line, progress
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import col
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats, TermStats
from hedgerow.spark.compute.checksum import Checksum
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.entry import Entry
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.part import Part, join_parts, parts_of, with_joined_appends, write_layout, write_part
from hedgerow.tables.state import TableState, newest_state, operation, read_state, update_state

APPENDS = {"quick": (1, 10, 100), "full": (1, 10, 100, 1000)}
SIZES = {"quick": (1_000,), "full": (1_000, 100_000)}
FIRST_FILES, FILES, ROWS = 1_000, 4, 1_000_000
NUMBERS = ("id", "customer", "price", "quantity", "amount")
SCHEMA = {
    **dict.fromkeys(NUMBERS, "bigint"),
    **dict.fromkeys(("day", "shipped"), "date"),
    **dict.fromkeys(("status", "city", "comment"), "string"),
}
NOW = {"spark.hedgerow.lookups": "false", **{f"spark.sql.setting{i}": "true" for i in range(40)}}


def run(options: Options) -> Iterator[dict[str, Any]]:
    marks, seed = APPENDS[options.form], options.seed
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        yield from _appends(CountedFolder.at(Path(folder)), marks, options, seed)


def _appends(side: CountedFolder, marks: tuple[int, ...], options: Options, seed: int) -> Iterator[dict[str, Any]]:
    fields = tuple({"name": n, "type": kind, "nullable": True, "metadata": {}} for n, kind in _spark_types().items())
    bare = Entry("", "", "", fields, NOW, Writing(), tuple(map(col, SCHEMA)), Checksum(0, 0, 0))
    bare = write_layout(side, bare, TreeLayout((), ()))
    first = write_part(side, bare, BlockIndex(make_stats(FIRST_FILES, 0, seed)), make_list(FIRST_FILES, seed))
    done = operation("apply", 1, first)
    update_state(side, "parquet", lambda state, _: replace(state, name="t", parts=(first,), operations=(done,)))
    traffic, written, own = side.traffic, 0, 0
    for number in range(1, marks[-1] + 1):
        opened = _opened(side) if number in marks else ()
        before, read = sum(traffic.written.values()), traffic.read
        stats = make_stats(FILES, FIRST_FILES + number * FILES, seed + number)
        _append(side, bare, number, BlockIndex(stats), make_list(FILES, seed + number))
        in_this = sum(traffic.written.values()) - before
        written, own = written + in_this, own + _own_bytes(stats, seed + number)
        if number not in marks:
            continue
        progress(f"appends: {number:,}")
        details: dict[str, Any] = {"written": in_this, "read": traffic.read - read}
        details["written_on_average"] = round(written / number)
        for name, known in (("cold", ()), ("warm", opened)):
            read = traffic.read
            parts = _opened(side, known)
            details[name] = traffic.read - read
        details |= {"parts": len(parts), "state": Path(side.root, f"state-{newest_state(side)}.json").stat().st_size}
        if number == marks[-1]:
            details["bytes_a_file"] = {f"{n:,} files": _bytes_a_file(n, seed) for n in SIZES[options.form]}
        yield line(
            suite="appends",
            params={"form": options.form, "appends": number},
            blocks=FIRST_FILES + number * FILES,
            ratio=round(written / own, 2),
            details=details,
            seed=seed,
        )


def _append(side: CountedFolder, bare: Entry, number: int, index: BlockIndex, files: KnownFiles) -> None:
    added = write_part(side, replace(bare, id=""), index, files)
    done = operation("append", number, added, rows=ROWS * number)

    def grown(state: TableState, _: int) -> TableState:
        return with_joined_appends(side, state.with_part(added, done))

    update_state(side, "parquet", grown)


def _opened(side: CountedFolder, before: tuple[Part, ...] = ()) -> tuple[Part, ...]:
    parts = parts_of(side, read_state(side, newest_state(side)).parts, before)
    join_parts(parts, NOW, parts[-1].entry.columns)
    return parts


def _own_bytes(stats: Stats, seed: int) -> int:
    return len(index_bytes(BlockIndex(stats))) + len(make_list(len(stats), seed).to_bytes())


def _bytes_a_file(files: int, seed: int) -> dict[str, float]:
    stats = make_stats(files, 0, seed)
    none = len(index_bytes(BlockIndex(replace(stats, terms={}))))
    columns = {
        name: len(index_bytes(BlockIndex(replace(stats, terms={name: term})))) - none
        for name, term in stats.terms.items()
    }
    whole = {"index": len(index_bytes(BlockIndex(stats))), "list": len(make_list(files, seed).to_bytes())}
    return {name: round(size / files, 1) for name, size in {**whole, **columns}.items()}


# --- the invented table ---------------------------------------------------------------------------


def _spark_types() -> dict[str, str]:
    return {name: {"bigint": "long"}.get(kind, kind) for name, kind in SCHEMA.items()}


def make_stats(files: int, first: int, seed: int) -> Stats:
    """Invent the statistics of files: id and the dates follow the order of the files, customer and amount do not."""
    rng, at = np.random.default_rng(seed), first + np.arange(files)

    def noise(size: int) -> Any:
        return rng.integers(0, size, files)

    price, amount, day = noise(10_000_000), noise(1 << 40), 12_000 + at // 100
    spans = {
        "id": (at * ROWS + noise(1000), (at + 1) * ROWS - noise(1000)),
        "customer": (noise(50_000), 50_000_000 - noise(50_000)),
        "price": (price, price + noise(100_000)),
        "quantity": (np.ones(files, np.int64), np.full(files, 50)),
        "amount": (amount, amount + noise(1 << 40)),
        "day": (day, day + 1),
        "shipped": (day + noise(3), day + 30 - noise(3)),
    }
    terms: dict[str, TermStats] = {name: of_span(Type(SCHEMA[name]), *span) for name, span in spans.items()}
    terms["status"] = of_few([f"status {i}" for i in range(5)], 3, files, rng)
    terms["city"] = of_few([f"city {i:03}" for i in range(200)], 20, files, rng)
    low, high = ([f"{end}{number:011x}" for number in noise(1 << 40).tolist()] for end in "az")
    terms["comment"] = of_span(Type("string"), low, high)
    return Stats(np.full(files, ROWS), terms, {})


def make_list(files: int, seed: int) -> KnownFiles:
    """Invent the list of files, with names as Spark writes them."""
    rng = np.random.default_rng(seed)
    job = UUID(int=random.Random(seed).getrandbits(128))
    names = tuple(f"part-{i:05d}-{job}-c000.snappy.parquet" for i in range(files))
    columns = {name: rng.integers(100_000, 8_000_000, files) for name in SCHEMA}
    return KnownFiles(names, rng.integers(90 << 20, 110 << 20, files), np.full(files, ROWS), np.arange(files), columns)
