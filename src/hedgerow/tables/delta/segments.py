"""What is written down about a Delta table's files, in `_hedgerow/`: segments, and a numbered list of them.

    layout-<id>.json  index-<id>.arrow  files-<id>.arrow     one segment: the files of one write
    delta-3.json                                             the newest list of segments, and what was done

Files are known by name and size, so a segment holds in every version in which its files are, and says nothing in any
other. It is written down before its files are committed: if that fails, it speaks of files that no version has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import Any
from uuid import uuid4

from hedgerow.core.errors import FormatError
from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.layouts.base import Layout, layout_from_json, layout_to_json
from hedgerow.core.predicates.nodes import Cast, Column, Predicate, columns
from hedgerow.core.predicates.predicate_json import decode
from hedgerow.core.predicates.sql_text import quote_name, term_text, text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import SIDE, KnownFiles
from hedgerow.tables.settings_fit import difference, fitting_index

VERSION = 1
_KEPT = 10  # older lists, for readers that are still at work; and segments without a file, for older versions
_DAY = 24 * 3600
_LIST = re.compile(r"delta-(\d{1,18})\.json")


@dataclass(frozen=True)
class Segment:
    """The files of one write and what is known of them; `meta` is its entry in the manifest."""

    side: Folder
    meta: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.meta["id"])

    @cached_property
    def known(self) -> KnownFiles:
        return KnownFiles.of_bytes(self.side.read(f"files-{self.id}.arrow"), self.side.root)

    @cached_property
    def stored(self) -> BlockIndex:
        return index_of_bytes(self.side.read(f"index-{self.id}.arrow"), f"the index of {self.side.root}")

    @cached_property
    def layout(self) -> Layout:
        return layout_from_json(self.side.read(f"layout-{self.meta['layout']}.json").decode())

    @cached_property
    def items(self) -> list[Item]:
        return [decode(item) for item in self.meta["statistics"]]

    @cached_property
    def _indexes(self) -> dict[Any, BlockIndex]:
        return {}

    def index(self, now: Mapping[str, str], columns: Mapping[str, str]) -> BlockIndex:
        """As far as it holds under these settings and for the columns that are still what they were."""
        differs = difference(self.meta["settings"], now)
        gone = {name.lower() for name, what in self.meta["columns"].items() if columns.get(name) != what}
        key = (differs and differs[0], frozenset(gone))
        if key not in self._indexes:
            found = fitting_index(self.stored, self.schema, key[0])
            self._indexes[key] = _without(found, self.items, gone) if gone else found
        return self._indexes[key]

    @cached_property
    def schema(self) -> dict[str, Type]:
        return {name: Type.parse(kind) for name, kind in self.meta["schema"].items()}


def _without(index: BlockIndex, items: Sequence[Item], gone: set[str]) -> BlockIndex:
    """What of the index does not speak of columns that are other ones by now."""
    lost = {text(i) if isinstance(i, Predicate) else term_text(i) for i in items if speaks_of(i, gone)}
    views = []
    for view in index.views:
        terms = {name: t for name, t in view.stats.terms.items() if name not in lost}
        features = {name: f for name, f in view.stats.features.items() if not speaks_of(f.predicate, gone)}
        views.append(View(Stats(view.stats.rows, terms, features), view.membership))
    return BlockIndex(tuple(views))


def speaks_of(item: Item, names: set[str]) -> bool:
    """Whether any of these columns, in lower case, is in it."""
    match item:
        case Column():
            own: Any = (item,)
        case Cast(column=column):
            own = (column,)
        case _:
            own = columns(item) if isinstance(item, Predicate) else item.columns
    return any({quote_name(c.path[0]).lower(), c.path[0].lower()} & names for c in own)


# --- the side folder ---


def side_of(log: DeltaLog) -> Folder:
    return Folder(log.spark, f"{log.path}/{SIDE}")


def newest(side: Folder) -> int:
    """The number of the newest list, 0 if there is none."""
    return max((int(m[1]) for m in map(_LIST.fullmatch, side.sizes()) if m), default=0)


def read_list(side: Folder, number: int) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(side.read(f"delta-{number}.json"))
        newer = found["format"] > VERSION
        found["segments"][:0], found["operations"][:0]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the list {side.root}/delta-{number}.json is damaged") from error
    if newer:
        raise FormatError(f"{side.root} was written by a newer Hedgerow (format {found['format']})")
    return found


def note(log: DeltaLog, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """A new list after the newest, whoever wrote that."""
    side = side_of(log)
    while True:
        number = newest(side)
        empty: dict[str, Any] = {"format": VERSION, "segments": [], "operations": []}
        found = change(read_list(side, number) if number else empty)
        if side.write(f"delta-{number + 1}.json", json.dumps(found, indent=1).encode(), new=True):
            break
    used = {part for meta in found["segments"] for part in (meta["id"], meta["layout"])}
    for name in side.sizes():
        kind, _, key = name.partition(".")[0].partition("-")
        if kind == "delta" and key.isdigit():
            is_old = int(key) <= number + 1 - _KEPT
        else:  # of a run that was killed, or of one that is about to name it
            is_old = kind in ("index", "files", "layout") and key not in used and side.age(name) > _DAY
        if is_old:
            side.delete(name)


def write_segment(
    log: DeltaLog, meta: Mapping[str, Any], layout: Layout | None, stats: Stats, files: KnownFiles
) -> dict[str, Any]:
    """The segment's entry for a list; without a layout it shares that of `meta`."""
    side, own = side_of(log), uuid4().hex[:12]
    if layout is not None:
        side.write(f"layout-{own}.json", layout_to_json(layout).encode())
    side.write(f"index-{own}.arrow", index_bytes(BlockIndex((View(stats),))))
    side.write(f"files-{own}.arrow", files.to_bytes())
    return {**meta, "id": own, "layout": own if layout is not None else meta["layout"]}


def with_segment(
    found: dict[str, Any], segment: dict[str, Any], snapshot: Snapshot, operation: dict[str, Any]
) -> dict[str, Any]:
    """The list with one more; of segments whose files are all gone only the newest stay, for older versions."""
    side = side_of(snapshot.log)

    def is_there(meta: dict[str, Any]) -> bool:
        return any(name in snapshot.files.place for name in Segment(side, meta).known.names)

    dead = [meta["id"] for meta in found["segments"] if not is_there(meta)][:-_KEPT]
    kept = [meta for meta in found["segments"] if meta["id"] not in dead]
    return {**found, "segments": [*kept, segment], "operations": [*found["operations"], operation]}


def without_segment(found: dict[str, Any], own: str) -> dict[str, Any]:
    """The list as if a write that came to nothing had never begun."""
    return {
        **found,
        "segments": [meta for meta in found["segments"] if meta["id"] != own],
        "operations": [o for o in found["operations"] if o.get("segment") != own],
    }


def operation(what: str, version: int | None, segment: Mapping[str, Any] | None) -> dict[str, Any]:
    """What was done, for the table's history."""
    found: dict[str, Any] = {"operation": what, "time": datetime.now(timezone.utc).isoformat(timespec="seconds")}
    if version is not None:
        found["version"] = version
    if segment is not None:
        found |= {"segment": segment["id"], **{k: segment[k] for k in ("learner", "workload") if k in segment}}
    return found
