"""Stores the state of a managed table, its parts and its operations, in `_hedgerow/state-<n>.json`.

    state-3.json                                             the newest state, with the names of the other files
    files-<id>.arrow  index-<id>.arrow  layout-<id>.json     a part: the files of one write
    lookup-<id>/                                             a filter of one of its columns

A state is written after all files that it names, and only if no other writer took its number. So a table is in the old
state or in the new one at any time, also after a run was killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, Literal

from hedgerow.core.errors import FormatError, HedgerowError
from hedgerow.core.predicates.predicate_json import encode
from hedgerow.spark.storage.folder import PARTIAL, Folder
from hedgerow.tables.entry import Entry
from hedgerow.tables.known_files import WAVE
from hedgerow.tables.lookups import FOLDER
from hedgerow.tables.sealed import sealed, unsealed

Kind = Literal["parquet", "delta"]
_MAX_KEPT_STATES = 10  # readers may still use an older state
_DAY_SECONDS = 24 * 3600
STATE_FILE = rf"state-(\d{{1,18}})\.json(?:{PARTIAL})?"
PART_FILE = rf"(?:(?:index|files)-[0-9a-f]{{12}}\.arrow|layout-[0-9a-f]{{12}}\.json)(?:{PARTIAL})?|{FOLDER}"
_LEFT = re.compile(rf"{PART_FILE}|{WAVE}|(?:{WAVE}|auto\.lock|rewrite_cost\.json){PARTIAL}")


@dataclass(frozen=True)
class TableState:
    """The parts of a table, and its operations so far.

    Args:
        kind: the table's format when this was written; a Parquet table may become a Delta table.
        name: the table's name in workloads.
        parts: all parts, the newest last.
        operations: all operations so far, each as `history` shows it.
        copy_of: for a replica, the ids of the table's writes whose rows it has.
    """

    kind: Kind
    name: str = ""
    parts: tuple[Entry, ...] = ()
    operations: tuple[Mapping[str, Any], ...] = ()
    copy_of: tuple[str, ...] | None = None

    @property
    def writes(self) -> tuple[str, ...]:
        """The ids of all writes whose files the table has."""
        return tuple(write for entry in self.parts for write, _ in entry.writes)

    def with_part(self, entry: Entry, operation: Mapping[str, Any]) -> TableState:
        """Return the state with one more part; the same state if it has the part already, as a write may be retried."""
        if entry.id in self.writes:
            return self
        return replace(self, parts=(*self.parts, entry), operations=(*self.operations, operation))

    def without_part(self, part: str) -> TableState:
        """Return the state without the part of a failed write and its operation."""
        parts = tuple(entry for entry in self.parts if entry.id != part)
        operations = tuple(o for o in self.operations if o.get("part") != part)
        return replace(self, parts=parts, operations=operations)

    def to_bytes(self) -> bytes:
        return sealed({**vars(self), "parts": list(map(encode, self.parts))})

    @staticmethod
    def of_bytes(data: bytes, place: str) -> TableState:
        """Return the state from the bytes of `to_bytes`; FormatError if they are damaged or of another version."""
        stored = unsealed(data, f"the state of {place}")
        try:
            copy_of = stored["copy_of"]
            kinds: dict[str, Kind] = {"parquet": "parquet", "delta": "delta"}
            return TableState(
                kinds[stored["kind"]],
                str(stored["name"]),
                tuple(map(Entry.of_json, stored["parts"])),
                tuple({**o, "operation": str(o["operation"])} for o in stored["operations"]),
                None if copy_of is None else tuple(map(str, copy_of)),
            )
        except (FormatError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"the state of {place} is damaged") from error


def newest_state(side: Folder) -> int:
    """Return the number of the newest state in a side folder, 0 if there is none."""
    numbers = (re.fullmatch(r"state-(\d{1,18})\.json", name) for name in side.sizes())
    return max((int(number[1]) for number in numbers if number), default=0)


def read_state(side: Folder, number: int) -> TableState:
    """Return a state of a table by its number."""
    return TableState.of_bytes(side.read(state_name(number)), side.root.rpartition("/")[0])


def state_name(number: int) -> str:
    return f"state-{number}.json"


def write_first_state(side: Folder, state: TableState) -> None:
    """Write the state of a new table."""
    side.write(state_name(1), state.to_bytes())


def update_state(side: Folder, kind: Kind, change: Callable[[TableState, int], TableState]) -> None:
    """Write a changed state after the newest one; start again if another writer takes its number first.

    `change`: returns the changed state, from the newest state and the number of the next one. It gets an empty state if
    the newest one belongs to a table of another kind. HedgerowError if another table takes the place meanwhile."""
    while True:
        number = newest_state(side)
        before = side.read(state_name(number)) if number else b""
        state = TableState.of_bytes(before, side.root.rpartition("/")[0]) if number else TableState(kind)
        changed = change(state if state.kind == kind else TableState(kind), number + 1)
        if side.write(state_name(number + 1), changed.to_bytes(), new=True):
            break
    if number:
        _check_follows(side, number, before)
    _clean(side, number + 1, changed)


def _check_follows(side: Folder, number: int, before: bytes) -> None:
    """Delete the new state, and raise HedgerowError, unless the state before it still exists."""
    try:
        is_same = side.read(state_name(number)) == before
    except HedgerowError:
        is_same = False
    if not is_same:
        side.delete(state_name(number + 1))
        place = side.root.rpartition("/")[0]
        raise HedgerowError(f"another table took the place of {place} meanwhile, so nothing is changed")


def _clean(side: Folder, number: int, state: TableState) -> None:
    """Delete old states, and files that belong to no part."""
    used = {name for entry in state.parts for name in entry.files_used}
    for name in side.sizes():
        match = re.fullmatch(STATE_FILE, name)
        if match:
            is_old = int(match[1]) <= number - _MAX_KEPT_STATES
        else:  # left by a killed run; a run may still list a younger file, or a reader use it
            written = f"{name}/_SUCCESS" if re.fullmatch(FOLDER, name) else name  # a store's folders have no age
            is_old = bool(_LEFT.fullmatch(name)) and name not in used and side.age(written) > _DAY_SECONDS
        if is_old:
            with suppress(HedgerowError):  # the state is written, and the next one tries again
                side.delete(name)


def utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def operation(verb: str, version: int | None, entry: Entry | None = None, **facts: Any) -> dict[str, Any]:
    """Return a record for the table's history."""
    record: dict[str, Any] = {"operation": verb, "time": utc_now()}
    if version is not None:
        record["version"] = version
    if entry is not None:
        record |= {"part": entry.id, **({"learner": entry.origin["learner"]} if "learner" in entry.origin else {})}
    return {**record, **facts}
