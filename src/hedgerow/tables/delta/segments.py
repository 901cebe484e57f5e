"""Stores the index of a Delta table in `_hedgerow/`: segments, and a numbered list of them.

    layout-<id>.json  index-<id>.arrow  files-<id>.arrow     one segment: the files of one write
    delta-3.json                                             the newest list of segments, and the operations so far

A segment describes files by name and size, so it holds in every version that has these files, and in no other. It is
written before its files are committed: if the commit fails, it describes files that no version has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Any
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.index.without_columns import without_columns
from hedgerow.core.layouts.base import Layout, layout_from_json, layout_to_json
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot
from hedgerow.spark.storage.folder import PARTIAL, Folder
from hedgerow.tables.delta.segment_list import SegmentEntry, SegmentList, list_name, newest_list, read_list
from hedgerow.tables.known_files import SIDE, KnownFiles
from hedgerow.tables.sealed import digest, read_sealed
from hedgerow.tables.settings_fit import difference, fitting_index

_MAX_KEPT = 10  # older lists, for readers that still use them, and segments without a file, for older versions
_LIST = re.compile(rf"delta-\d+\.json({PARTIAL})?")
_PART = re.compile(rf"((index|files)-[0-9a-f]{{12}}\.arrow|layout-[0-9a-f]{{12}}\.json)({PARTIAL})?")
_DAY_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Segment:
    """The files of one write and their index."""

    side: Folder
    entry: SegmentEntry

    @property
    def id(self) -> str:
        return self.entry.id

    @cached_property
    def known(self) -> KnownFiles:
        return KnownFiles.of_bytes(self._read(f"files-{self.id}.arrow"), self.side.root)

    @cached_property
    def stored(self) -> BlockIndex:
        return index_of_bytes(self._read(f"index-{self.id}.arrow"), f"the index of {self.side.root}")

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self._read(f"layout-{self.entry.layout}.json"))

    def _read(self, name: str) -> bytes:
        return read_sealed(self.side, name, self.entry.seals)

    @cached_property
    def _indexes(self) -> dict[Any, BlockIndex]:
        return {}

    def index(self, now: Mapping[str, str], columns: Mapping[str, str]) -> BlockIndex:
        """The part of the index that holds under these settings and for these columns (name -> identity)."""
        differs = difference(self.entry.settings, now)
        replaced = {name.lower() for name, identity in self.entry.columns.items() if columns.get(name) != identity}
        for j in self.entry.joined:  # joined over a column that was replaced
            keys = j.joined.steps[0].columns
            if not replaced.isdisjoint({*map(str.lower, keys), *(quote_name(key).lower() for key in keys)}):
                replaced.add(j.name.lower())
        key = (differs and differs[0], frozenset(replaced))
        if key not in self._indexes:
            index = fitting_index(self.stored, self.schema, key[0])
            self._indexes[key] = without_columns(index, self.entry.statistics, replaced)
        return self._indexes[key]

    @cached_property
    def schema(self) -> dict[str, Type]:
        return {name: Type.parse(kind) for name, kind in self.entry.schema.items()}


# --- the side folder ---


def side_folder(log: DeltaLog) -> Folder:
    return Folder(log.spark, f"{log.path}/{SIDE}")


def update_list(log: DeltaLog, change: Callable[[SegmentList], SegmentList]) -> None:
    """Writes a changed list after the newest one; if another writer takes that number first, starts again."""
    side = side_folder(log)
    while True:
        number = newest_list(side)
        changed = change(read_list(side, number) if number else SegmentList())
        if side.write(list_name(number + 1), changed.to_bytes(), new=True):
            break
    used = {part for entry in changed.segments for part in (entry.id, entry.layout)}
    for name in side.sizes():
        key = name.partition(".")[0].partition("-")[2]
        if _LIST.fullmatch(name):
            is_old = int(key) <= number + 1 - _MAX_KEPT
        else:  # left by a killed run; a younger file may belong to a run that will still list it
            is_old = bool(_PART.fullmatch(name)) and key not in used and side.age(name) > _DAY_SECONDS
        if is_old:
            side.delete(name)


def write_segment(
    log: DeltaLog, entry: SegmentEntry, layout: Layout | None, stats: Stats, files: KnownFiles
) -> SegmentEntry:
    """Writes a segment's files and returns its entry with an id; without a layout it shares that of `entry`."""
    side, own = side_folder(log), uuid4().hex[:12]
    written = {f"index-{own}.arrow": index_bytes(BlockIndex(stats)), f"files-{own}.arrow": files.to_bytes()}
    shared = {name: seal for name, seal in entry.seals.items() if name == f"layout-{entry.layout}.json"}
    if layout is not None:
        written[f"layout-{own}.json"] = layout_to_json(layout).encode()
        entry, shared = replace(entry, layout=own), {}
    try:
        for name, data in written.items():
            side.write(name, data)
    except BaseException:
        with suppress(HedgerowError, *spark_errors()):
            for name in written:
                side.delete(name)
        raise
    return replace(entry, id=own, seals={**shared, **{name: digest(data) for name, data in written.items()}})


def with_segment(
    listed: SegmentList, entry: SegmentEntry, snapshot: Snapshot, operation: Mapping[str, Any]
) -> SegmentList:
    """The list with one more segment; of segments without any existing file, only the newest are kept."""
    side = side_folder(snapshot.log)

    def is_there(other: SegmentEntry) -> bool:
        return any(name in snapshot.files.place for name in Segment(side, other).known.names)

    dead = [other.id for other in listed.segments if not is_there(other)][:-_MAX_KEPT]
    kept = [other for other in listed.segments if other.id not in dead]
    return replace(listed, segments=(*kept, entry), operations=(*listed.operations, operation))


def without_segment(listed: SegmentList, segment_id: str) -> SegmentList:
    """The list without the segment of a failed write and its operation."""
    kept = tuple(entry for entry in listed.segments if entry.id != segment_id)
    done = tuple(o for o in listed.operations if o.get("segment") != segment_id)
    return replace(listed, segments=kept, operations=done)


def operation(verb: str, version: int | None, entry: SegmentEntry | None) -> dict[str, Any]:
    """An operation for the table's history."""
    made: dict[str, Any] = {"operation": verb, "time": datetime.now(timezone.utc).isoformat(timespec="seconds")}
    if version is not None:
        made["version"] = version
    if entry is not None:
        made |= {"segment": entry.id, **{k: entry.origin[k] for k in ("learner", "workload") if k in entry.origin}}
    return made
