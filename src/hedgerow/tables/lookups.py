"""The filters of look-ups that a table keeps: chooses their columns, builds them, and joins them to its index.

WHERE event_id = '7f3a...'    the bounds of every file let it pass; the filters name the one file that may hold it

Where the index describes row groups, the filters name the row groups that may hold a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zlib import crc32

import numpy as np

from hedgerow.core.arrays import Bits, Bools, Ints
from hedgerow.core.errors import HedgerowError, advise
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import Column, Compare, Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.core.pruning.spark_hash import hash_of, is_hashable
from hedgerow.core.pruning.value_filter import LEAST_BYTES, Shape, best_shape, join_filters, looked_up
from hedgerow.spark.compute.collect_stats import Entries, RowGroups
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.filter_files import FilterFile, FilterFiles, write_filter
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.write.build_filter import CountedValues, build_filter, count_values, numbered, values_of
from hedgerow.tables.known_files import KnownFiles, file_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = r"lookup-[0-9a-f]{12}"  # the names of folders with filters
MAX_VALUES = 200  # a longer IN list is not looked up
_MAX_REMEMBERED = 1000  # look-ups
_MAX_JOINED_BYTES = 8 << 20  # larger filters are not joined, because the driver would do it
_MAX_THREADS = 8
_MIN_SKIPPED = 0.5  # the share that a filter has to skip of the files that the rest of the index lets pass
_MIN_ADVISED_BYTES = 16 << 20  # a smaller table is read in no time
_MAX_TRIED = 50  # literals of a column that tell how many files its bounds let pass


@dataclass(frozen=True)
class Lookup:
    """The filter of a column for some neighbouring files of a part, as the table's state stores it.

    Args:
        name: its folder in the side folder.
        path: the column.
        type: the column's Spark type when the filter was built.
        shape: see `Shape`.
        files, per_file: see `FilterFiles`.
        first, count: the place of the first file in the part's list, and the number of files.
        false_positives: the expected share of opened files among those that do not hold a value; of row groups, if
            `by_group`.
        by_group: it names row groups instead of files.
    """

    name: str
    path: tuple[str, ...]
    type: str
    shape: Shape
    files: tuple[FilterFile, ...]
    per_file: int
    first: int
    count: int
    false_positives: float
    by_group: bool = False

    @property
    def column(self) -> str:
        return term_text(Column(self.path))

    @property
    def sizes(self) -> dict[str, int]:
        return {file.name: file.size for file in self.files}

    @property
    def bytes(self) -> int:
        return sum(self.sizes.values())

    def files_in(self, side: Folder) -> FilterFiles:
        return FilterFiles(side, self.name, self.files, self.shape, self.per_file)

    def facts(self) -> dict[str, Any]:
        """Return the facts for `describe`."""
        shown = {"column": self.column, "files": self.count, "bytes": self.bytes}
        return {**shown, "false_positives": round(self.false_positives, 4)}


# --- choosing and building ---


def files_let_pass(
    predicates: Iterable[Predicate], stats: Stats, schema: Mapping[str, Type]
) -> dict[Column, list[int]]:
    """Return the columns that conditions look up, each with the number of entries that pass for some values.

    `stats`: of files, or of row groups where the index has them.
    Outcomes of noted conditions are left out: they are known for the values of these conditions only.
    """
    passed, stats = dict[Column, list[int]](), replace(stats, conditions={})
    for column, literals in looked_up(predicates):
        type_ = schema.get(term_text(column), Type(OTHER))
        if term_text(column) not in stats.terms or not is_hashable(type_):
            continue  # without a term, the value may depend on the session: a timestamp in the name of a folder
        counts = passed.setdefault(column, [])
        for literal in literals[: _MAX_TRIED - len(counts)]:
            if literal.kind == type_.kind:
                counts.append(int(may_match(Compare(column, "=", literal), stats).sum()))
    return {column: counts for column, counts in passed.items() if counts}


def pays_to_filter(passed: Sequence[int]) -> bool:
    """True if a filter may save files: without it, a value passes in two or more."""
    return float(np.mean(passed)) >= 2


def same_columns(lookups: Iterable[Lookup]) -> dict[Column, Sequence[int]]:
    """Return the columns of these filters, for `build_lookups`."""
    return {Column(lookup.path): () for lookup in lookups}


def build_lookups(
    side: Folder,
    frame: DataFrame,
    files: KnownFiles,
    index: BlockIndex,
    schema: Mapping[str, Type],
    wanted: Mapping[Column, Sequence[int]],
    share: float,
) -> tuple[Lookup, ...]:
    """Build filters of the wanted columns for new files, as far as a share of the files' bytes allows.

    `index`: of these files. `wanted`: see `files_let_pass`; a column without numbers gets a filter whatever it gains.
    """
    left, lookups = share * float(files.sizes.sum()), list[Lookup]()
    is_too_small = left < LEAST_BYTES and any(wanted.values())  # later files of a table with filters get them too
    names = {c: term_text(c) for c, passed in wanted.items() if not passed or pays_to_filter(passed)}
    if share <= 0 or is_too_small or not names or not files.rows.any():
        return ()
    groups = index.groups_of_all
    entries = Entries(file_names(files.names), None if groups is None else RowGroups.of_index(index))
    rows, keys = numbered(frame, entries), entries.keys(entries.files)
    counted = count_values(rows, list(names.values()))
    if not _are_all_counted(counted, keys, files.rows if groups is None else groups.stats.rows):
        advise("the rows of new files could not be counted, so these files get no filters for look-ups")
        return ()
    distinct = {c: counted.distinct[name] for c, name in names.items()}
    numbers = np.unique(_numbers(keys))
    for column in columns_that_gain(wanted, distinct, {c: counted.in_all[name] for c, name in names.items()}):
        values = np.zeros(len(numbers), np.int64)  # of the entry at each place
        values[np.searchsorted(numbers, counted.entries)] = distinct[column]
        shape = best_shape(values, left, can_join=not wanted[column])
        if shape is None:
            if wanted[column] and files.sizes.sum() >= _MIN_ADVISED_BYTES:
                advise(
                    f"look-ups of {names[column]} get no filter: {share:.1%} of the table's bytes are too few for its "
                    "values. Another lookup_share= may do"
                )
            continue
        name, size = _new_name(), shape.stored_bytes(values)
        built = build_filter(values_of(rows, names[column]), shape, numbers, side, name, size)
        stored = str(schema[names[column]]), shape, built.files, built.per_file
        expected = shape.false_positives(values)
        lookups.append(Lookup(name, column.path, *stored, 0, len(files), expected, groups is not None))
        left -= lookups[-1].bytes
    return tuple(lookups)


def _are_all_counted(counted: CountedValues, keys: Sequence[str], rows: Ints) -> bool:
    """True if exactly the rows of these entries were counted, under the entries' numbers."""
    expected: dict[int, int] = {}
    for number, of_entry in zip(_numbers(keys).tolist(), rows.tolist(), strict=True):
        expected[number] = expected.get(number, 0) + of_entry
    of_numbers = dict(zip(counted.entries.tolist(), counted.rows.tolist(), strict=True))
    return {number: rows for number, rows in expected.items() if rows} == of_numbers


def gain_of_filter(passed: Sequence[int], distinct: Ints, in_all: int) -> float:
    """Return the files that a filter would skip in the look-ups of a workload; 0 if it would skip too few of them."""
    if not passed:
        return 1.0
    opened, holding = float(np.mean(passed)), float(distinct.sum()) / max(1, in_all)
    return (opened - holding) * len(passed) if opened - holding >= max(1.0, opened * _MIN_SKIPPED) else 0.0


def columns_that_gain(
    passed: Mapping[Column, Sequence[int]], distinct: Mapping[Column, Ints], in_all: Mapping[Column, int]
) -> list[Column]:
    """Return the columns whose filter would skip files, the largest gain first."""
    gains = {c: gain_of_filter(passed[c], distinct[c], in_all[c]) for c in distinct}
    return sorted((c for c in gains if gains[c] > 0), key=lambda c: (-gains[c], term_text(c)))


def _new_name() -> str:
    return f"lookup-{uuid4().hex[:12]}"


def _numbers(keys: Sequence[str]) -> Ints:
    return np.array([crc32(key.encode()) for key in keys], np.int64)


# --- joining ---


def join_lookups(
    side: Folder, older: Sequence[StoredFilter], newer: Sequence[StoredFilter], files: int
) -> tuple[Lookup, ...]:
    """Return the filters of two parts whose files become one list; the older part has so many `files`.

    Small filters of one column become one, because a look-up reads a block of each."""
    newer = [replace(new, lookup=replace(new.lookup, first=new.lookup.first + files)) for new in newer]
    lookups = [old.lookup for old in older]
    for new in newer:
        before = [old for old in older if _are_neighbours(old.lookup, new.lookup)]
        joined = _joined(side, before[0], new) if before else None
        if joined is not None:
            lookups.remove(before[0].lookup)
        lookups.append(joined or new.lookup)
    return tuple(lookups)


def _are_neighbours(a: Lookup, b: Lookup) -> bool:
    return (a.path, a.type, a.by_group, a.first + a.count) == (b.path, b.type, b.by_group, b.first)


def _joined(side: Folder, older: StoredFilter, newer: StoredFilter) -> Lookup | None:
    """Write one filter of the files of two; None if they are large or damaged, or if it opens one more file.

    A filter of its own costs a look-up about as much as one more file."""
    both = (older, newer)
    if sum(f.lookup.bytes for f in both) > _MAX_JOINED_BYTES:
        return None
    keys = (*older.keys, *newer.keys)
    numbers = np.unique(_numbers(keys))
    try:
        placed = [(f.stored.shape, f.stored.all_blocks(), np.searchsorted(numbers, f.numbers)) for f in both]
        shape, blocks, expected = join_filters(placed, len(numbers))
    except _failures():
        return None
    if expected * len(keys) > sum(f.lookup.false_positives * len(f) for f in both) + 1:
        return None
    name = _new_name()
    written = write_filter(side, name, shape, blocks)
    of, files, per_file = older.lookup, written.files, written.per_file
    count = of.count + newer.lookup.count
    return Lookup(name, of.path, of.type, shape, files, per_file, of.first, count, expected, of.by_group)


# --- using ---


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of reading a filter."""
    return (HedgerowError, ValueError, *spark_errors())


@dataclass(frozen=True)
class StoredFilter:
    """A filter of some files or their row groups, read when it is needed. A damaged filter excludes nothing."""

    lookup: Lookup
    stored: FilterFiles
    names: Sequence[str]
    groups: RowGroups | None = None
    _remembered: dict[int, Bits] = field(default_factory=dict, repr=False)

    @staticmethod
    def of_part(lookup: Lookup, side: Folder, names: Sequence[str], index: BlockIndex) -> StoredFilter:
        """Return a stored filter of a part. `names`, `index`: of all files of the part."""
        last, groups = lookup.first + lookup.count, RowGroups.of_index(index) if lookup.by_group else None
        if groups is not None:
            own = slice(*np.searchsorted(groups.file, [lookup.first, last]).tolist())
            groups = RowGroups(groups.file[own] - lookup.first, groups.start[own])
        return StoredFilter(lookup, lookup.files_in(side), names[lookup.first : last], groups)

    def __len__(self) -> int:
        """The number of entries that it knows."""
        return len(self.names) if self.groups is None else len(self.groups.start)

    @cached_property
    def keys(self) -> Sequence[str]:
        """The keys of these entries."""
        files = file_names(self.names)
        return Entries(files, self.groups).keys(files)

    @cached_property
    def numbers(self) -> Ints:
        """The number of the entry at each place of the filter."""
        return np.unique(_numbers(self.keys))

    @cached_property
    def _places(self) -> Ints:
        """The place of each entry in the filter."""
        return np.searchsorted(self.numbers, _numbers(self.keys))

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        type_, every_entry = Type.parse(self.lookup.type), np.ones(len(self), bool)
        if kind != type_.kind or len(values) > MAX_VALUES:
            return every_entry
        hashes = [h for v in values if (h := hash_of(type_, v)) is not None]
        if len(hashes) < len(values):
            return every_entry
        remembered = {h: bits for h in hashes if (bits := self._remembered.get(h)) is not None}
        try:
            bits_of = {**remembered, **self._read([h for h in hashes if h not in remembered])}
        except _failures():
            return every_entry
        bits = np.bitwise_or.reduce([bits_of[h] for h in hashes])
        return np.unpackbits(bits, count=len(self)).view(bool)

    def _read(self, hashes: Sequence[int]) -> dict[int, Bits]:
        """Return for each hash the entries that may hold a value with it, as packed bits, and remember them."""
        shape, bits_of = self.stored.shape, dict[int, Bits]()
        blocks = self.stored.blocks(map(shape.block, hashes)) if hashes else {}
        for h in hashes:
            may_hold = np.zeros(shape.files, bool)
            may_hold[shape.places(blocks[shape.block(h)], h)] = True
            bits_of[h] = np.packbits(may_hold[self._places])
        if len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.clear()
        self._remembered.update(bits_of)
        return bits_of


@dataclass(frozen=True)
class JoinedFilter:
    """The filters of one column for the entries of several parts: each filter with the place of its first entry."""

    size: int
    sections: list[tuple[int, StoredFilter]]

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        may_hold = np.ones(self.size, bool)
        with ThreadPoolExecutor(_MAX_THREADS) as pool:
            parts = pool.map(lambda section: section[1].may_hold(kind, values), self.sections)
            for (start, one), part in zip(self.sections, parts, strict=True):
                may_hold[start : start + len(one)] &= part
        return may_hold
