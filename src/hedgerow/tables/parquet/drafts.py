"""The files of an append wait in a hidden folder until the manifest that lists them is written, and then move.

    _hedgerow/append-<id>/part-00000-....parquet  ->  part-00000-....parquet

So an append is done or not done when its manifest is there or not. Files that a killed run left waiting are moved by
whoever opens the table next.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.parquet.stored import StoredParquet, data_files

_DRAFT = re.compile(r"append-[0-9a-f]{8}")


def new_draft(table: StoredParquet) -> StoredParquet:
    """An empty table in the hidden folder of an append, in the state of the table."""
    return _draft(table, f"{SIDE}/append-{uuid4().hex[:8]}")


def _draft(table: StoredParquet, place: str) -> StoredParquet:
    return StoredParquet(table.spark, f"{table.path}/{place}", table.manifest)


def move_in(table: StoredParquet, draft: StoredParquet, names: Sequence[str]) -> None:
    """Moves these files of the draft into the table, and deletes the draft; another process may do the same."""
    folder = Folder(table.spark, table.path)
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    place = draft.path.removeprefix(f"{table.path}/")
    for name in names:
        try:
            folder.move(f"{place}/{name}", name)
        except failures as error:
            if not folder.exists(name):
                raise HedgerowError(
                    f"rows were appended to {table.path}, but the file {name} cannot be moved to the others: "
                    f"open the table again, which finishes it ({first_line(error)})"
                ) from error
    folder.delete(place)


def give_up(table: StoredParquet, draft: StoredParquet, names: Collection[str]) -> None:
    """Deletes the draft of an append that failed, if it is certain that no manifest lists its files."""
    with suppress(HedgerowError, *spark_errors()):
        if not set(names) & set(StoredParquet.open(table.spark, table.path).known.names):
            Folder(table.spark, draft.path).delete()


def finish_appends(table: StoredParquet) -> None:
    """Moves the files of appends that were killed after their manifest was written."""
    for place in drafts(table):
        draft = _draft(table, place)
        waiting = [*data_files(table.spark, draft.path), *draft.hidden_files()]
        if waiting and set(waiting) <= set(table.known.names):
            move_in(table, draft, waiting)


def drafts(table: StoredParquet) -> list[str]:
    """The folders of appends that are at work, or were killed."""
    return sorted(f"{SIDE}/{n}" for n, size in table.side.sizes().items() if size < 0 and _DRAFT.fullmatch(n))
