"""Reads the footers of many Parquet files, and the dictionaries of their columns, into arrays.

    few files     threads of the driver
    many files    tasks: Spark reads the bytes, Python parses them; the driver gets arrays of many files at a time

Both parse with the same code, so both say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import StorageError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Bound, Stats, TermStats
from hedgerow.core.pruning.combine_stats import concat, regroup, repeat
from hedgerow.spark.start.jar import gateway, ship_jar
from hedgerow.spark.start.session import configured, engines_off, first_line, spark_errors
from hedgerow.spark.start.ship import ship_modules
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footer import ColumnValues, Footer, Wanted, parse_footer, read_tail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

V = TypeVar("V")
MAX_ON_DRIVER = 200  # of more files the footers are read by tasks
_MAX_THREADS = 8
_FILES_OF_TASK, _FILES_AT_ONCE = 256, 32
_TO_READ = "number bigint, path string, size bigint, tail binary, starts array<bigint>, lengths array<bigint>"
_SUMMARY = "sizes binary, terms binary"


@dataclass(frozen=True)
class Footers:
    """The facts of several footers: entry i of every array is of a file, or of one of its row groups.

    Args:
        file: the number of each entry's file; row groups are in the order of the file.
        start: the byte at which a row group begins.
        rows: UNREADABLE if the footer cannot be read.
        columns: bytes on disk of each top-level column, by its quoted name; 0 in files without it.
        unpacked: the same after decompression.
        terms: statistics of the wanted columns whose values every footer states.
    """

    file: Ints
    start: Ints
    rows: Ints
    columns: Mapping[str, Ints]
    unpacked: Mapping[str, Ints]
    terms: Mapping[str, TermStats]

    def __len__(self) -> int:
        return len(self.rows)

    def known_terms(self, schema: Mapping[str, Type]) -> dict[str, TermStats]:
        """Return the statistics of the columns that have the same type in the table and in all files."""
        return {name: term for name, term in self.terms.items() if schema.get(name) == term.type}

    def mean_widths(self, unpacked: bool = False) -> dict[str, float]:
        """Return the mean bytes of a value of each column, on disk or after decompression."""
        rows = max(1, int(self.rows[self.rows > 0].sum()))
        return {
            name: float(sizes.sum()) / rows for name, sizes in (self.unpacked if unpacked else self.columns).items()
        }

    def renamed(self, names: Mapping[str, str]) -> Footers:
        """Return the facts of these columns only, under other names."""

        def renamed(by_name: Mapping[str, V]) -> dict[str, V]:
            return {names[old]: value for old, value in by_name.items() if old in names}

        columns, unpacked = renamed(self.columns), renamed(self.unpacked)
        return replace(self, columns=columns, unpacked=unpacked, terms=renamed(self.terms))

    def of_whole_files(self, files: int) -> Footers:
        """Return the facts of this number of files, each from those of its row groups."""

        def total(values: Ints) -> Ints:
            sums = np.zeros(files, np.int64)
            np.add.at(sums, self.file, values)
            return sums

        columns, unpacked = (
            {name: total(sizes) for name, sizes in by_name.items()} for by_name in (self.columns, self.unpacked)
        )
        stats = regroup(Stats(self.rows, self.terms, {}), self.file, files)
        return Footers(np.arange(files), np.zeros(files, np.int64), total(self.rows), columns, unpacked, stats.terms)

    @staticmethod
    def of_files(numbers: Sequence[int], footers: Sequence[Footer]) -> Footers:
        """Return the facts as arrays; `numbers`: of the files."""

        def sizes(by_file: Sequence[Mapping[str, int]]) -> dict[str, Ints]:
            names = dict.fromkeys(name for of_file in by_file for name in of_file)
            return {name: np.array([of_file.get(name, 0) for of_file in by_file], np.int64) for name in names}

        file, start, rows = (
            np.array([(n, f.start, f.rows) for n, f in zip(numbers, footers, strict=True)], np.int64).reshape(-1, 3).T
        )
        columns, unpacked = sizes([f.columns for f in footers]), sizes([f.unpacked for f in footers])
        return Footers(file, start, rows, columns, unpacked, _terms(footers))

    @staticmethod
    def concat(parts: Sequence[Footers]) -> Footers:
        """Return the facts of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]

        def sizes(by_part: Sequence[Mapping[str, Ints]]) -> dict[str, Ints]:
            names = dict.fromkeys(name for of_part in by_part for name in of_part)
            lengths = [len(part) for part in parts]
            return {
                name: np.concatenate(
                    [of_part.get(name, np.zeros(n, np.int64)) for of_part, n in zip(by_part, lengths, strict=True)]
                )
                for name in names
            }

        file, start, rows = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(part, name) for part in parts)]) for name in _NUMBERS
        )
        columns, unpacked = sizes([part.columns for part in parts]), sizes([part.unpacked for part in parts])
        return Footers(file, start, rows, columns, unpacked, _joined_terms(parts))

    def take(self, places: Ints) -> Footers:
        """Return the facts at these places, in this order."""
        columns, unpacked = (
            {name: sizes[places] for name, sizes in by_name.items()} for by_name in (self.columns, self.unpacked)
        )
        file, start, rows = (getattr(self, name)[places] for name in _NUMBERS)
        return Footers(file, start, rows, columns, unpacked, repeat(Stats(self.rows, self.terms, {}), places).terms)

    def to_batch(self) -> pa.RecordBatch:
        """Return the facts as one row of bytes."""
        sizes = {
            f"{side}:{name}": pa.array(getattr(self, side)[name]) for side in _SIDES for name in getattr(self, side)
        }
        table = pa.table({**{name: pa.array(getattr(self, name)) for name in _NUMBERS}, **sizes})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        parts = sink.getvalue().to_pybytes(), _term_bytes(self)
        return pa.record_batch([pa.array([part], pa.binary()) for part in parts], names=["sizes", "terms"])

    @staticmethod
    def of_row(row: Mapping[str, bytes]) -> Footers:
        table = pa.ipc.open_stream(row["sizes"]).read_all()
        columns, unpacked = (
            {
                name[len(side) + 1 :]: table[name].to_numpy()
                for name in table.column_names
                if name.startswith(f"{side}:")
            }
            for side in _SIDES
        )
        file, start, rows = (table[name].to_numpy() for name in _NUMBERS)
        return Footers(file, start, rows, columns, unpacked, index_of_bytes(row["terms"]).blocks.terms)


_NUMBERS, _SIDES = ("file", "start", "rows"), ("columns", "unpacked")


def _term_bytes(footers: Footers) -> bytes:
    return index_bytes(BlockIndex(Stats(footers.rows, footers.terms, {})))


def _terms(footers: Sequence[Footer]) -> dict[str, TermStats]:
    """Return statistics of the columns whose values every footer with rows states, of one type."""
    with_rows = [f for f in footers if f.rows]
    stats = {}
    for name in with_rows[0].values if with_rows else ():
        by_file = [f.values.get(name) for f in footers]
        type_ = with_rows[0].values[name].type
        if all(v.type == type_ if v else not f.rows for v, f in zip(by_file, footers, strict=True)):
            stats[name] = _term(type_, by_file)
    return stats


def _term(type_: Type, by_file: Sequence[ColumnValues | None]) -> TermStats:
    """Return the statistics of a column; None stands for a file without rows."""
    words = [v.words if v else frozenset[str]() for v in by_file]
    return TermStats.build(
        type_,
        [(Bound(v.low), Bound(v.high)) if v and v.low is not None else None for v in by_file],
        [v.nulls if v else 0 for v in by_file],
        sets=[tuple(v.few) if v and v.few is not None else None if v else () for v in by_file],
        words=TermStats.of_sets(type_, words) if any(words) else None,
    )


def _joined_terms(parts: Sequence[Footers]) -> dict[str, TermStats]:
    """Return the statistics of the columns whose values all parts state, without those that have no row."""
    with_rows = [part for part in parts if part.rows.any()]
    joined = {}
    for name in with_rows[0].terms if with_rows else ():
        type_ = with_rows[0].terms[name].type
        if all(name in part.terms and part.terms[name].type == type_ for part in with_rows):
            terms = [part.terms[name] if part.rows.any() else _term(type_, [None] * len(part)) for part in parts]
            all_parts = [Stats(part.rows, {name: term}, {}) for part, term in zip(parts, terms, strict=True)]
            joined[name] = concat(all_parts).terms[name]
    return joined


# --- reading --------------------------------------------------------------------------------------


def footers_of(
    folder: Folder,
    sizes: Mapping[str, int],
    sets_of: Collection[str] = (),
    words_of: Collection[str] = (),
    bounds_of: Collection[str] = (),
    by_group: bool = False,
) -> Footers:
    """Return the footers of the files, in the order of `sizes`, which maps names to bytes. See `Wanted`."""
    wanted = Wanted(frozenset(sets_of), frozenset(words_of), frozenset(bounds_of), by_group)
    if len(sizes) > MAX_ON_DRIVER:
        return _by_tasks(folder, sizes, wanted)

    def read(name: str) -> list[Footer]:
        tail = read_tail(folder, name, sizes[name])
        asked = _asked_for(tail, wanted)
        parts = dict(zip(asked, folder.read_parts(name, sizes[name], asked), strict=True)) if asked else {}
        return parse_footer(tail, wanted, partial(_parts_read, parts))

    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        return _of_files(range(len(sizes)), list(pool.map(read, sizes)))


def _of_files(numbers: Iterable[int], by_file: Sequence[Sequence[Footer]]) -> Footers:
    entries = [(number, footer) for number, own in zip(numbers, by_file, strict=True) for footer in own]
    return Footers.of_files([number for number, _ in entries], [footer for _, footer in entries])


def _by_tasks(folder: Folder, sizes: Mapping[str, int], wanted: Wanted) -> Footers:
    """Read the footers in tasks.

    size, path  ->  Spark: the footer  ->  Python: the parts to read  ->  Spark: these parts  ->  Python: arrays"""
    from pyspark.sql.classic.column import Column

    spark = folder.spark
    ship_modules(spark)
    ship_jar(spark)
    paths = ["/".join(part for part in (folder.root, name) if part) for name in sizes]
    listed = pa.table({"number": np.arange(len(paths)), "path": paths, "size": pa.array(sizes.values(), pa.int64())})
    java = gateway(spark)
    try:
        with engines_off(spark), configured(spark, execution__arrow__maxRecordsPerBatch=_FILES_AT_ONCE):
            files = _in_tasks(spark, listed)
            tails = files.withColumn("tail", Column(java.footers(spark._jsparkSession, *_java(files, "path", "size"))))
            planned = tails.mapInArrow(partial(_with_parts_to_read, wanted=wanted), _TO_READ)
            parts = java.parts(spark._jsparkSession, *_java(planned, "path", "size", "starts", "lengths"))
            read = planned.withColumn("parts", Column(parts)).drop("path", "size")
            rows = read.mapInArrow(partial(_parsed, wanted=wanted), _SUMMARY).toArrow().to_pylist()
    except spark_errors() as error:
        raise StorageError(f"the footers of the files in {folder.root} cannot be read: {first_line(error)}") from error
    footers = Footers.concat([Footers.of_row(row) for row in rows])
    return footers.take(np.argsort(footers.file, kind="stable"))


def _in_tasks(spark: SparkSession, listed: pa.Table) -> DataFrame:
    """Return the files as a frame of several partitions. Spark evaluates nothing on the driver above a repartition."""
    tasks = max(spark.sparkContext.defaultParallelism, len(listed) // _FILES_OF_TASK)
    return spark.createDataFrame(listed).repartition(tasks)


def _java(frame: DataFrame, *names: str) -> list[Any]:
    return [frame[name]._jc for name in names]


def _with_parts_to_read(batches: Iterator[pa.RecordBatch], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Add the places of the dictionaries that parsing will ask for."""
    for batch in batches:
        places = [_asked_for(tail, wanted) for tail in batch["tail"].to_pylist()]
        starts, lengths = ([[part[side] for part in parts] for parts in places] for side in (0, 1))
        kind = pa.list_(pa.int64())
        columns = [*batch.columns, pa.array(starts, kind), pa.array(lengths, kind)]
        yield pa.record_batch(columns, names=[*batch.schema.names, "starts", "lengths"])


def _asked_for(tail: bytes, wanted: Wanted) -> list[tuple[int, int]]:
    parts: dict[tuple[int, int], None] = {}

    def note(places: Sequence[tuple[int, int]]) -> list[bytes]:
        parts.update(dict.fromkeys(places))
        raise ValueError("not read yet")  # as if the dictionary could not be read: the next column follows

    parse_footer(tail, wanted, note)
    return list(parts)


def _parsed(batches: Iterator[pa.RecordBatch], wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Parse the files of a task; yield their facts as one row of bytes."""
    parts: list[Footers] = []
    for batch in batches:
        footers = [
            parse_footer(row["tail"], wanted, partial(_parts_read, _read_parts(row))) for row in batch.to_pylist()
        ]
        parts.append(_of_files(batch["number"].to_pylist(), footers))
    if parts:
        yield Footers.concat(parts).to_batch()


def _read_parts(row: Mapping[str, Any]) -> dict[tuple[int, int], bytes]:
    """Return the parts of a file that were read, by place and length."""
    return dict(zip(zip(row["starts"], row["lengths"], strict=True), row["parts"], strict=True))


def _parts_read(read: Mapping[tuple[int, int], bytes], places: Sequence[tuple[int, int]]) -> list[bytes]:
    return [read[place] for place in places]
