"""Appends to a Parquet table: the files stay in a hidden folder until the state that lists them is written.

    _hedgerow/append-<run>/part-00000-....parquet  ->  part-00000-....parquet

So an append is complete when its state is written. If a run is killed before it moved all files, the next process that
opens the table moves them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.start.session import first_line, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.lookups import same_columns
from hedgerow.tables.parquet.folder import ParquetFolder, open_folder
from hedgerow.tables.parquet.runs import DRAFT, new_run, was_killed
from hedgerow.tables.parquet.write import check_same_rows, fitting_rows, lookups_of, write_files
from hedgerow.tables.part import Part, with_joined_appends, write_part
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.state import TableState, operation, update_state
from hedgerow.tables.stored_joins import joins_of, to_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append(folder: ParquetFolder, part: Part, frame: DataFrame, copy_of: TableState | None = None) -> None:
    """Write the rows into a draft folder, list them in a new state, and then move the files into the table.

    Without rows, nothing is changed. `copy_of`: the state of the table whose replica this is; afterwards the replica
    must have exactly the rows of that state."""
    if hiding := folder.partitions():
        raise HedgerowError(
            f"nothing can be appended to {folder.path}: others made the folder {hiding[0]} in it, beside which Spark "
            "does not read the table's own files; move it out"
        )
    _delete_killed(folder)
    draft = ParquetFolder(folder.spark, f"{folder.path}/{SIDE}/append-{new_run()}", folder.fields)
    names, old = tuple[str, ...](), part.entry
    try:
        frame = fitting_rows(folder.fields, frame)
        with settings_as_written(folder.spark, old.settings):
            now = settings(folder.spark)
            check_settings(f"nothing can be appended to {folder.path}", old.settings, now)
            joins = joins_of(folder.spark, old.joined, frame)
            checksum, index, files = write_files(draft, frame, part.layout, old.writing, old.statistics, joins)
        names = files.names if checksum.rows else ()
        if names:
            joined = to_store(joins, (*old.statistics, *part.layout.features))
            lookups = lookups_of(draft, folder.side, files, index, same_columns(old.lookups), old.writing)
            entry = replace(old, id="", write="", settings=now, checksum=checksum, joined=joined, lookups=lookups)
            _commit(folder, write_part(folder.side, entry, index, files), copy_of)
    except BaseException as error:
        _give_up(folder, draft, names)
        if isinstance(error, spark_errors()):
            raise HedgerowError(f"nothing could be appended to {folder.path}: {first_line(error)}") from error
        raise
    _move_in(folder, draft, names)
    folder.spark.catalog.refreshByPath(folder.path)  # else a cached frame lacks the new rows


def _commit(folder: ParquetFolder, entry: Entry, copy_of: TableState | None) -> None:
    """List the part after the newest state, which may be a concurrent writer's."""

    def with_part(state: TableState, number: int) -> TableState:
        if not state.parts or state.parts[0].id != folder.parts[0].id:
            raise HedgerowError(f"another table took the place of {folder.path} meanwhile, so nothing is changed")
        changed = state.with_part(entry, operation("append", number, entry, rows=total((*state.parts, entry)).rows))
        changed = with_joined_appends(folder.side, changed)
        if copy_of is None:
            return changed
        if state.last_write != folder.parts[-1].entry.write:
            raise Overtaken
        check_same_rows(copy_of, total(changed.parts))
        return replace(changed, copy_of=copy_of.last_write)

    update_state(folder.side, "parquet", with_part)


class Overtaken(Exception):
    """Another writer appended to the replica first."""


def _move_in(folder: ParquetFolder, draft: ParquetFolder, names: Sequence[str]) -> None:
    """Move these files of the draft into the table, and delete the draft; another process may do the same."""
    root = Folder(folder.spark, folder.path)
    place = draft.path.removeprefix(f"{folder.path}/")
    for name in names:
        try:
            root.move(f"{place}/{name}", name)
        except HedgerowError as error:
            if not root.exists(name):
                raise HedgerowError(
                    f"rows were appended to {folder.path}, but the file {name} cannot be moved to the others: "
                    f"open the table again, which finishes it ({error})"
                ) from error
    with suppress(HedgerowError):  # the rows are in the table, and `describe` names the draft
        root.delete(place)


def _give_up(folder: ParquetFolder, draft: ParquetFolder, names: Collection[str]) -> None:
    """Delete the draft of an append that failed, unless a state may list its files."""
    with suppress(HedgerowError):
        now, _ = open_folder(folder.spark, folder.path)
        if not set(names) & _listed(now):
            Folder(folder.spark, draft.path).delete()


def finish_appends(folder: ParquetFolder) -> None:
    """Move the files of appends that were killed after their state was written."""
    for place in drafts(folder):
        draft = ParquetFolder(folder.spark, f"{folder.path}/{place}", folder.fields)
        waiting = [*draft.data_files(), *draft.hidden_files()]
        if waiting and set(waiting) <= _listed(folder):
            _move_in(folder, draft, waiting)


def _listed(folder: ParquetFolder) -> set[str]:
    return {name for part in folder.parts for name in part.known.names}


def drafts(folder: ParquetFolder) -> list[str]:
    """Return the folders of appends that are running or were killed."""
    names = (name for name, size in folder.side.sizes().items() if size < 0 and re.fullmatch(DRAFT, name))
    return sorted(f"{SIDE}/{name}" for name in names)


def _delete_killed(folder: ParquetFolder) -> None:
    """Delete the drafts of runs that were killed before a state listed their files."""
    root = Folder(folder.spark, folder.path)
    killed = [place for place in drafts(folder) if was_killed(place.removeprefix(f"{SIDE}/append-"), root, place)]
    if killed:
        listed = _listed(open_folder(folder.spark, folder.path)[0])  # read after the last of these runs has ended
        for place in killed:
            draft = ParquetFolder(folder.spark, f"{folder.path}/{place}", folder.fields)
            if listed.isdisjoint([*draft.data_files(), *draft.hidden_files()]):
                with suppress(HedgerowError):
                    root.delete(place)
