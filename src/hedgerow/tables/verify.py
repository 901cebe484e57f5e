"""Verifies a table: the rows of every write whose files are all unchanged, and the statistics of some files."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import HedgerowError, counted
from hedgerow.core.index.block_index import concat_indexes
from hedgerow.core.index.without_columns import mentions, without_columns, without_functions
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.predicates.sql_text import feature_text, quote_name
from hedgerow.core.pruning.combine_stats import agree
from hedgerow.spark.compute.checksum import checksum
from hedgerow.spark.compute.collect_stats import Entries, RowGroups, collect_files, with_words
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.session_settings import changed_functions
from hedgerow.spark.start.progress import step
from hedgerow.spark.write.build_filter import is_intact
from hedgerow.spark.write.copies import copied
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.formats import Snapshot, schema_at
from hedgerow.tables.known_files import file_names, is_hidden
from hedgerow.tables.parquet.folder import ParquetFolder
from hedgerow.tables.part import Part
from hedgerow.tables.settings_fit import settings_as_written
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import readable_joins

_MAX_CHECKED_FILES = 8  # the statistics of so many files are collected again
T = TypeVar("T")


def verify_files(table: StoredTable, seed: int) -> dict[str, Any]:
    """Compare a table with its checksums and statistics; return how much was compared. HedgerowError if they differ.

    `not_compared`: why the rows of some writes and files have not been compared; left out if all have been."""
    snapshot = table.format.snapshot()
    if not table.format.is_shared:
        _raise_first(table, _changed_files(table, snapshot))
    same = [part for part in table.parts if part.entry.columns.items() <= snapshot.columns.items()]
    why_not = {part.id: _why_not_compared(part, snapshot) for part in table.parts}
    rows = _compare_rows(table, [part for part in same if why_not[part.id] is None], snapshot)
    left = [part for part in table.parts if any(name in snapshot.files.place for name in part.known.names)]
    reasons = Counter(reason for part in left if (reason := why_not[part.id]) is not None)
    if isinstance(table.format, ParquetFolder):
        _raise_first(table, _wrong_copies(table, table.format))
    damaged = [one.lookup.column for part in table.parts for one in part.filters if not is_intact(one.stored)]
    _raise_first(table, [f"its filter for look-ups of {column} is damaged" for column in damaged])
    checked = {"rows_compared": rows, "files_with_statistics_checked": _compare_statistics(table, same, snapshot, seed)}
    not_compared = [f"{counted(count, 'write')}: {reason}" for reason, count in reasons.items()]
    if foreign := sum(name not in table.written for name in snapshot.files.names):
        not_compared.append(f"{counted(foreign, 'file')}: not written by Hedgerow")
    return checked | ({"not_compared": not_compared} if not_compared else {})


def _why_not_compared(part: Part, snapshot: Snapshot) -> str | None:
    """Return why the rows of a part cannot be compared with those that were written; None if they can be."""
    if part.entry.checksum is None:
        return "an append to a Delta table has no checksum"
    if not part.entry.columns.items() <= snapshot.columns.items():
        return "some of its columns have been changed or dropped since"
    if not all(snapshot.files.untouched(*file) for file in part.known.sizes_by_name.items()):
        return "some of its rows or files have been deleted or replaced since"
    return None


def _changed_files(table: StoredTable, snapshot: Snapshot) -> list[str]:
    """Return a sentence for each file that is missing or not visible, or that Hedgerow did not write."""
    files, listed = snapshot.files, table.written
    foreign = [n for n, size in zip(files.names, files.sizes.tolist(), strict=True) if listed.get(n) != size]
    missing = [n for n in listed if n not in files.place]
    folders = table.format.partitions() if isinstance(table.format, ParquetFolder) else []
    return [
        *(f"the folder {n} hides its files from Spark" for n in folders),
        *(f"the file {n} is not Hedgerow's" for n in foreign),
        *(f"the file {n} is missing" for n in missing),
    ]


def _compare_rows(table: StoredTable, parts: Sequence[Part], snapshot: Snapshot) -> int:
    """Compare all rows of the parts, whose files are unchanged; return how many. Equal columns form a group."""
    compared = 0
    for group in grouped(parts, lambda part: tuple(part.entry.columns)):  # hashes depend on the order of columns
        names = [name for part in group for name in part.known.names if not is_hidden(name)]
        columns = [quote_name(field["name"]) for field in group[0].entry.fields]
        with step(table.spark, "comparing all rows"):
            present = checksum(snapshot.frame(names).select(*columns))
        expected = total([part.entry for part in group])
        if present != expected:
            _raise_first(table, [f"its rows are not those that were written: {present}, but {expected} were written"])
        compared += expected.rows
    return compared


def _wrong_copies(table: StoredTable, folder: ParquetFolder) -> list[str]:
    """Return a sentence if the stored copies differ from new copies of the table's rows."""
    names = [name for part in table.parts for name in part.known.names]
    hidden = [name for name in names if is_hidden(name)]
    if not hidden:
        return []
    layout = table.layout
    assert isinstance(layout, OverlapLayout)
    own = folder.frame([name for name in names if not is_hidden(name)])
    with step(table.spark, "comparing copies"), settings_as_written(table.spark, table.newest.entry.settings):
        same = checksum(copied(own, layout, table.schema)) == checksum(folder.with_copies(hidden))
    return [] if same else ["the copies in several blocks have other rows than the blocks"]


def _compare_statistics(table: StoredTable, parts: Sequence[Part], snapshot: Snapshot, seed: int) -> int:
    """Collect the statistics of some files again and compare them with the stored ones; return the number of files."""
    files = snapshot.files
    unchanged = [
        (number, i)
        for number, part in enumerate(parts)
        for i, file in enumerate(part.known.sizes_by_name.items())
        if files.untouched(*file)
    ]
    drawn = sorted(random.Random(seed).sample(unchanged, min(_MAX_CHECKED_FILES, len(unchanged))))
    chosen = [(part, np.array([i for n, i in drawn if n == number])) for number, part in enumerate(parts)]
    with step(table.spark, "comparing statistics"):
        described = [(part, at) for part, at in chosen if len(at)]
        for group in grouped(described, lambda c: (described_alike(c[0].entry), c[0].stored_index.groups is None)):
            _raise_first(table, _wrong_statistics(table, group, snapshot))
    return len(drawn)


def described_alike(entry: Entry) -> Hashable:
    """Return a key that is equal for parts whose files can be described together."""
    joined = tuple((j.places, j.described) for j in entry.joined)
    return entry.layout, tuple(sorted(entry.settings.items())), entry.statistics, joined, tuple(entry.columns.items())


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """Return the items in lists, one for each key."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def _wrong_statistics(table: StoredTable, chosen: Sequence[tuple[Part, Ints]], snapshot: Snapshot) -> list[str]:
    """Return a sentence for each file whose stored statistics differ from newly collected ones."""
    part = chosen[0][0]
    items, lost = part.entry.statistics, table.stale(part)
    names = [part.known.names[i] for part, places in chosen for i in places]
    changed = changed_functions(part.entry.settings, settings(table.spark))  # they may return other values now
    indexes = [(without_columns(p.stored_index, p.entry.statistics, lost), at) for p, at in chosen]
    stored = concat_indexes([without_functions(index, changed).take(at) for index, at in indexes])
    described = {*stored.blocks.terms, *stored.blocks.conditions}
    groups = RowGroups.of_index(stored)
    with settings_as_written(table.spark, part.entry.settings):
        fresh = collect_files(
            snapshot.frame(names),
            [i for i in items if feature_text(i) in described and not mentions(i, lost)],
            schema_at(snapshot),
            Entries(file_names(names), groups),
            joins=readable_joins(table.spark, part.entry.joined),
        )
        blocks = with_words(fresh.blocks, snapshot.frame(names), stored.blocks, file_names(names))
    same = agree(stored.blocks, blocks) | ((stored.blocks.rows == 0) & (blocks.rows == 0))  # any hold for no rows
    if stored.groups is not None and fresh.groups is not None:
        same[stored.groups.block[~agree(stored.groups.stats, fresh.groups.stats)]] = False
    return [f"the statistics of {name} are wrong" for name, is_same in zip(names, same, strict=True) if not is_same]


def _raise_first(table: StoredTable, differences: Sequence[str]) -> None:
    if differences:
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        raise HedgerowError(f"{table.path} is not as it was written: {differences[0]}{more}")


def same_rows_as(table: StoredTable, replica: StoredTable) -> bool:
    """True if both were written with the same rows."""
    return total(table.state.parts) == total(replica.state.parts)


def report(compared: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report of a check: the compared numbers, and some of the table's facts from `describe`."""
    shown = ("path", "version", "rows", "files", "layout_files", "layout_files_left", "unknown_rows")
    counted = {key: len(facts[key]) for key in ("missing_files", "unknown_files")}
    return {**{key: facts[key] for key in shown if key in facts}, **compared, **counted}
