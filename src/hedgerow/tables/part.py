"""Reads and writes the parts of a table, and joins their indexes, so that a query needs one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import uuid4

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex, concat_indexes
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.index.without_columns import without_columns, without_functions
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.layout_json import layout_from_json, layout_to_json
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.spark.session_settings import LOOKUPS, changed_functions
from hedgerow.spark.start.session import is_remote
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.lookups import JoinedFilter, Lookup, StoredFilter, join_lookups
from hedgerow.tables.sealed import digest, read_sealed
from hedgerow.tables.settings_fit import difference, fitting_index
from hedgerow.tables.state import TableState
from hedgerow.tables.stored_joins import StoredJoin, schema_of_joins

_MAX_THREADS = 8


@dataclass(frozen=True)
class Part:
    """The files of one write, with their index and layout, which are read from the side folder when needed."""

    side: Folder
    entry: Entry

    @property
    def id(self) -> str:
        return self.entry.id

    @cached_property
    def known(self) -> KnownFiles:
        return KnownFiles.of_bytes(self._read(self.entry.names[1]), self.side.root)

    @cached_property
    def stored_index(self) -> BlockIndex:
        return index_of_bytes(self._read(self.entry.names[0]), f"the index of {self.side.root}")

    @property
    def is_readable(self) -> bool:
        """False if its list of files or its index is damaged or gone."""
        try:
            _ = self.known, self.stored_index
        except HedgerowError:
            return False
        return True

    @cached_property
    def filters(self) -> tuple[StoredFilter, ...]:
        """The filters of its columns for look-ups; each is read when it is needed."""
        return _filters(self.side, self.entry.lookups, self.known.names, self.stored_index)

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self._read(self.entry.names[2]))

    def _read(self, name: str) -> bytes:
        return read_sealed(self.side, name, self.entry.seals)

    def reads_alike(self, now: Mapping[str, str]) -> bool:
        """True if a session with these settings surely reads the rows that were counted when the part was written."""
        differs = difference(self.entry.settings, now)
        return differs is None or differs[0] == "meaning"

    def index(self, now: Mapping[str, str], columns: Mapping[str, str]) -> BlockIndex:
        """Return the part of the index that holds under these settings and for these columns (name -> identity)."""
        replaced = {name.lower() for name, identity in self.entry.columns.items() if columns.get(name) != identity}
        for j in self.entry.joined:  # rows that are joined over a replaced column are replaced too
            keys = j.joined.steps[0].columns
            if not replaced.isdisjoint({*map(str.lower, keys), *(quote_name(key).lower() for key in keys)}):
                replaced.add(j.name.lower())
        differs = difference(self.entry.settings, now)
        schema = {**self.entry.schema, **schema_of_joins(self.entry.joined)}
        index = fitting_index(self.stored_index, schema, differs and differs[0])
        index = without_functions(index, changed_functions(self.entry.settings, now))
        return without_columns(index, self.entry.statistics, replaced)


@dataclass(frozen=True)
class JoinedParts:
    """Some parts of a table with one index over all their files.

    `joined`: the joined rows that it describes. `reads_alike`: for each file, `Part.reads_alike`.
    """

    known: KnownFiles
    index: BlockIndex
    joined: Sequence[StoredJoin]
    reads_alike: Bools


def join_parts(
    parts: Sequence[Part],
    now: Mapping[str, str],
    columns: Mapping[str, str],
    lost: Callable[[Part], Collection[str]] | None = None,
) -> list[JoinedParts]:
    """Join the parts that can answer the same condition, under these settings and for these columns.

    `lost`: returns the names of the joined rows that a part cannot describe any more; then all parts can be joined.
    Without it, only parts that describe the same versions of other tables are joined. Parts of a layout with copies
    are joined only with each other.
    """
    _load(parts)
    groups: dict[Any, list[tuple[Part, BlockIndex]]] = {}
    for part in parts:
        index = part.index(now, columns)
        if lost is not None:
            index = without_columns(index, part.entry.statistics, lost(part))
        layout = None if index.cells is None else part.entry.layout
        versions = () if lost is not None else tuple(j.described for j in part.entry.joined)
        groups.setdefault((layout, versions), []).append((part, index))
    return [
        JoinedParts(
            KnownFiles.concat([part.known for part, _ in group]),
            _with_filters(concat_indexes([index for _, index in group]), [part for part, _ in group], now, columns),
            group[0][0].entry.joined,
            np.concatenate([np.full(len(part.known), part.reads_alike(now)) for part, _ in group]),
        )
        for group in groups.values()
    ]


def _with_filters(
    index: BlockIndex, parts: Sequence[Part], now: Mapping[str, str], columns: Mapping[str, str]
) -> BlockIndex:
    """Return the index of these parts with the filters that hold under these settings and for these columns."""
    filters, of_groups, start = dict[str, JoinedFilter](), dict[str, JoinedFilter](), 0
    groups = index.groups
    is_off = now.get(LOOKUPS, "true").lower() != "true" or is_remote(parts[0].side.spark)
    for part in parts if not is_off and index.cells is None else ():
        for stored in part.filters if part.reads_alike(now) else ():
            top = quote_name(stored.lookup.path[0])
            if top not in part.entry.columns or columns.get(top) != part.entry.columns[top]:
                continue
            column, first = stored.lookup.column, start + stored.lookup.first
            if not stored.lookup.by_group:
                filters.setdefault(column, JoinedFilter(len(index.blocks), [])).sections.append((first, stored))
            elif groups is not None:
                first_group = int(np.searchsorted(groups.block, first))
                joined = of_groups.setdefault(column, JoinedFilter(len(groups.block), []))
                joined.sections.append((first_group, stored))
        start += len(part.known)
    if filters:
        index = replace(index, blocks=replace(index.blocks, filters=filters))
    if groups is not None and of_groups:
        index = replace(index, groups=replace(groups, stats=replace(groups.stats, filters=of_groups)))
    return index


def _load(parts: Sequence[Part]) -> None:
    """Read the indexes and lists of files of several parts at the same time; a damaged one raises when it is used."""
    if len(parts) > 1 and not is_remote(parts[0].side.spark):
        with ThreadPoolExecutor(_MAX_THREADS) as pool:
            list(pool.map(lambda part: part.is_readable, parts))


def new_id() -> str:
    return uuid4().hex[:12]


def write_part(side: Folder, entry: Entry, index: BlockIndex, files: KnownFiles) -> Entry:
    """Write the index and the list of files of a new part; return its entry with their ids and digests."""
    part_id = entry.id or new_id()
    entry = replace(entry, id=part_id, index=part_id, write=entry.write or part_id, files=len(files))
    if not files.writes:
        files = replace(files, writes=((part_id, len(files)),))
    index_name, files_name, layout_name = entry.names
    written = {index_name: index_bytes(index), files_name: files.to_bytes()}
    try:
        for name, data in written.items():
            side.write(name, data)
    except BaseException:
        with suppress(HedgerowError):
            for name in written:
                side.delete(name)
        raise
    seals = {layout_name: entry.seals[layout_name], **{name: digest(data) for name, data in written.items()}}
    return replace(entry, seals=seals)


def write_layout(side: Folder, entry: Entry, layout: Layout) -> Entry:
    """Write the layout of a rewrite; return the entry with its id and digest."""
    part_id, data = new_id(), layout_to_json(layout).encode()
    entry = replace(entry, id=part_id, layout=part_id)
    side.write(entry.names[2], data)
    return replace(entry, seals={entry.names[2]: digest(data)})


def with_joined_appends(side: Folder, state: TableState) -> TableState:
    """Join the newest part to earlier appends that are described alike.

    Only parts of similar size are joined. So the number of parts grows with the logarithm of the number of appends, and
    so does the number of times that a file is listed again."""
    parts, joined, files = list(state.parts[:-1]), [state.parts[-1]], state.parts[-1].files
    while parts and parts[-1].files < 2 * files and _are_alike(parts[-1], joined[0]):
        joined.insert(0, parts.pop())
        files += joined[0].files
    if len(joined) == 1:
        return state
    stored = parts_of(side, joined)
    _load(stored)
    if not all(part.is_readable and part.stored_index.cells is None for part in stored):
        return state
    newest, names, index = joined[-1], stored[-1].known.names, stored[-1].stored_index
    checksum, lookups = None if newest.checksum is None else total(joined), newest.lookups
    for part in reversed(stored[:-1]):
        lookups = join_lookups(side, part.filters, _filters(side, lookups, names, index), len(part.known))
        names, index = (*part.known.names, *names), concat_indexes([part.stored_index, index])
    entry = replace(newest, id="", checksum=checksum, lookups=lookups)
    return replace(state, parts=(*parts, write_part(side, entry, index, KnownFiles.concat([p.known for p in stored]))))


def _are_alike(older: Entry, newer: Entry) -> bool:
    """True if both were appended, and differ in their own files and rows only."""

    def described(entry: Entry) -> Entry:
        return replace(entry, id="", index="", checksum=None, seals={}, write="", files=0, lookups=())

    alike = older.was_appended and newer.was_appended and described(older) == described(newer)
    return alike and (older.checksum is None) == (newer.checksum is None)


def _filters(
    side: Folder, lookups: Iterable[Lookup], names: Sequence[str], index: BlockIndex
) -> tuple[StoredFilter, ...]:
    """Return the filters of a list of files, without those that name row groups which the index has no longer."""
    usable = (lookup for lookup in lookups if index.groups is not None or not lookup.by_group)
    return tuple(StoredFilter.of_part(lookup, side, names, index) for lookup in usable)


def write_index(part: Part, index: BlockIndex, **described: Any) -> Entry:
    """Write another index of a part's files; return the changed entry. `described`: the entry's changed fields."""
    entry, data = replace(part.entry, index=new_id(), **described), index_bytes(index)
    part.side.write(entry.names[0], data)
    seals = {name: seal for name, seal in entry.seals.items() if name in entry.names}
    return replace(entry, seals={**seals, entry.names[0]: digest(data)})


def parts_of(side: Folder, entries: Iterable[Entry], opened: Iterable[Part] = ()) -> tuple[Part, ...]:
    """Return the parts of these entries.

    `opened`: parts of another state of the table. What was read of a part that both states have is not read again."""
    opened, parts = tuple(opened), tuple(Part(side, entry) for entry in entries)
    for part in parts:
        for same in (one for one in opened if one.side.root == side.root and one.entry == part.entry):
            vars(part).update({name: vars(same)[name] for name in ("known", "stored_index") if name in vars(same)})
    return parts
