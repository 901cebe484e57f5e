"""Stores the state of a managed table, its parts and its operations, in `_hedgerow/state-<n>.json`.

    state-3.json                                             the newest state, with the names of the other files
    operations-<id>.json                                     earlier operations, see `tables/operations`
    files-<id>.arrow  index-<id>.arrow  layout-<id>.json     a part: the files of one write
    lookup-<id>/                                             a filter of one of its columns

A state is written after all files that it names, and only if no other writer took its number. So a table is in the old
state or in the new one at any time, also after a run was killed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
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
from hedgerow.tables.operations import (
    OPERATIONS_FILE,
    Operation,
    OperationsFile,
    checked_operations,
    move_out,
    newest_first,
)
from hedgerow.tables.sealed import sealed, unsealed

Kind = Literal["parquet", "delta"]
_MAX_KEPT_STATES = 10  # readers may still use an older state
_DAY_SECONDS = 24 * 3600
STATE_FILE = rf"state-(\d{{1,18}})\.json(?:{PARTIAL})?"
PART_FILE = (
    rf"(?:(?:index|files)-[0-9a-f]{{12}}\.arrow|layout-[0-9a-f]{{12}}\.json|{OPERATIONS_FILE})(?:{PARTIAL})?|{FOLDER}"
)
_LEFT = re.compile(rf"{PART_FILE}|{WAVE}|(?:{WAVE}|auto\.lock|rewrite_cost\.json){PARTIAL}")


@dataclass(frozen=True)
class TableState:
    """The parts of a table, and its operations so far.

    Args:
        kind: the table's format when this was written; a Parquet table may become a Delta table.
        name: the table's name in workloads.
        parts: all parts, the newest last.
        operations: the last operations, each as `history` shows it, at least `FEWEST_IN_STATE` if there are so many.
        copy_of: for a replica, the id of the table's last write whose rows it has; it has those of all before, too.
        earlier: the files with the earlier operations.
    """

    kind: Kind
    name: str = ""
    parts: tuple[Entry, ...] = ()
    operations: tuple[Operation, ...] = ()
    copy_of: str | None = None
    earlier: tuple[OperationsFile, ...] = ()

    @property
    def last_write(self) -> str:
        """The id of the last write whose files the table has. A write is listed after all that it follows."""
        return self.parts[-1].write

    @property
    def files_used(self) -> set[str]:
        """The names of all files and folders in the side folder that the state needs."""
        return {name for entry in self.parts for name in entry.files_used} | {file.name for file in self.earlier}

    def with_part(self, entry: Entry, operation: Operation) -> TableState:
        """Return the state with one more part; the same state if it has the part already, as a write may be retried."""
        if any(done.get("part") == entry.id for done in self.operations):
            return self
        return replace(self, parts=(*self.parts, entry), operations=(*self.operations, operation))

    def all_operations(self, side: Folder) -> tuple[Operation, ...]:
        """Return all operations, the oldest first; FormatError if a file with some of them is damaged."""
        return tuple(self.newest_operations(side))[::-1]

    def newest_operations(self, side: Folder) -> Iterator[Operation]:
        """Yield all operations, the newest first, which are mostly at hand."""
        return newest_first(side, self.earlier, self.operations)

    def with_all_operations(self, side: Folder) -> TableState:
        """Return the state with the earlier operations too, so that they can be changed."""
        return replace(self, operations=self.all_operations(side), earlier=())

    def with_version(self, part: str, version: int, side: Folder) -> TableState:
        """Return the state with the version in which a part was committed."""
        state = self._with_operation_of(part, side)
        done = ({**o, "version": version} if o.get("part") == part else o for o in state.operations)
        return replace(state, operations=tuple(done))

    def without_part(self, part: str, side: Folder) -> TableState:
        """Return the state without the part of a failed write and its operation."""
        parts = tuple(entry for entry in self.parts if entry.id != part)
        state = self._with_operation_of(part, side)
        return replace(state, parts=parts, operations=tuple(o for o in state.operations if o.get("part") != part))

    def _with_operation_of(self, part: str, side: Folder) -> TableState:
        """Return the state with a part's operation at hand; it is nearly always one of the last."""
        is_there = any(done.get("part") == part for done in self.operations)
        return self if is_there else self.with_all_operations(side)

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
                checked_operations(stored["operations"]),
                None if copy_of is None else str(copy_of),
                tuple(OperationsFile(str(name), int(count), str(seal)) for name, count, seal in stored["earlier"]),
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
        earlier, last = move_out(side, changed.earlier, changed.operations)
        changed = replace(changed, earlier=earlier, operations=last)
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
    """Delete old states, and files that no state needs any more."""
    states, unneeded, dropped = list[int](), list[str](), list[str]()
    used, now = state.files_used, time.time()
    for name, written in side.write_times().items():
        match = re.fullmatch(STATE_FILE, name)
        if match and int(match[1]) <= number - _MAX_KEPT_STATES:
            unneeded.append(name)
        elif match and not name.endswith(".partial"):
            states.append(int(match[1]))
        elif not match and _LEFT.fullmatch(name) and name not in used:
            # left by a killed run; a run may still list a younger file, or a reader use it
            is_folder = re.fullmatch(FOLDER, name) is not None
            age = side.age(f"{name}/_SUCCESS") if is_folder else now - written  # a store's folders have no age
            if age > _DAY_SECONDS:
                (dropped if re.fullmatch(PART_FILE, name) else unneeded).append(name)
    if dropped and number % _MAX_KEPT_STATES == 0:
        with suppress(HedgerowError):  # if a kept state is damaged, what it needs is not known
            kept = set[str]().union(*(read_state(side, one).files_used for one in states))
            unneeded += [name for name in dropped if name not in kept]
    for name in unneeded:
        with suppress(HedgerowError):  # the state is written, and a later one tries again
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
