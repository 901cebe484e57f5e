"""The operations on a table: the last ones are in its state, earlier ones in files of their own.

    state-100.json              operations 67 to 100
    operations-<id>.json        operations 1 to 66

Every write stores the whole state again, so the state must not grow with the number of writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.sealed import digest, read_sealed, sealed, unsealed

Operation = Mapping[str, Any]
FEWEST_IN_STATE, MOST_IN_STATE = 32, 64
OPERATIONS_FILE = r"operations-[0-9a-f]{12}\.json"


class OperationsFile(NamedTuple):
    """A file of earlier operations, which is never changed."""

    name: str
    size: int  # the number of its operations
    digest: str

    def read(self, side: Folder) -> tuple[Operation, ...]:
        stored = unsealed(read_sealed(side, self.name, {self.name: self.digest}), f"{side.root}/{self.name}")
        return checked_operations(stored.get("operations"))


def checked_operations(stored: Any) -> tuple[Operation, ...]:
    """Return operations as they were stored; errors of many kinds if they are damaged."""
    return tuple({**one, "operation": str(one["operation"])} for one in stored)


def newest_first(side: Folder, files: Sequence[OperationsFile], last: Sequence[Operation]) -> Iterator[Operation]:
    """Yield all operations; a file is read when its operations are asked for."""
    yield from reversed(last)
    for file in reversed(files):
        yield from reversed(file.read(side))


def move_out(
    side: Folder, files: Sequence[OperationsFile], last: Sequence[Operation]
) -> tuple[tuple[OperationsFile, ...], tuple[Operation, ...]]:
    """Move operations from a state to a file if it has many; return the files and the operations that are left.

    The file takes the place of smaller ones, so the number of files grows with the logarithm of the operations."""
    if len(last) <= MOST_IN_STATE:
        return tuple(files), tuple(last)
    kept, moved = list(files), list(last[:-FEWEST_IN_STATE])
    while kept and kept[-1].size < 2 * len(moved):
        try:
            moved = [*kept[-1].read(side), *moved]
        except HedgerowError:
            break  # it is damaged or gone, and stays listed
        kept.pop()
    data = sealed({"operations": moved})
    name = f"operations-{uuid4().hex[:12]}.json"
    side.write(name, data)
    return (*kept, OperationsFile(name, len(moved), digest(data))), tuple(last[-FEWEST_IN_STATE:])
