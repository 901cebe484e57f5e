"""Chooses the files that another engine needs for a condition, if it reads Parquet files and knows nothing of Hedgerow.

All of them are files of the table itself: a replica or a file with copies of rows is none of them. HedgerowError if the
files do not hold the table's rows as Spark shows them: if rows are deleted in Delta's log only, if columns have other
names in the files, if the values of a column are not in the files, or if Spark pads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import needs_jvm
from hedgerow.spark.storage.column_identity import CHAR, PHYSICAL_NAME
from hedgerow.spark.storage.delta_log import Snapshot as DeltaSnapshot
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.paths import files_by_folder, plain_path, reads_only_files
from hedgerow.tables.attach import routed
from hedgerow.tables.formats import Snapshot
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.folder import ParquetFolder
from hedgerow.tables.stored import StoredTable

_PADDED = re.compile(r"\bchar\(")


@dataclass(frozen=True)
class PlainFile:
    """The full path of a file. `is_ours`: Hedgerow wrote it, with the types that the table had then."""

    path: str
    is_ours: bool


def plain_files(table: StoredTable, where: str | None = None, version: int | None = None) -> list[PlainFile]:
    """Return the files that may hold rows on which Spark finds `where` TRUE; None: all files."""
    needs_jvm(table.spark, "list files for other engines")
    snapshot, root = table.format.snapshot(version), plain_path(Folder(table.spark, table.path).full_path)
    _check_table(table, snapshot)
    names = _full_paths(snapshot, root)
    opened = _opened(table, root, where, version)
    if opened is None:
        opened = set(names)
    if not opened <= names.keys() or table.format.snapshot(version).version != snapshot.version:
        raise HedgerowError(f"{table.path} was changed meanwhile: try again")
    paths = [path for path in names if path in opened]
    _check_rows(table, snapshot, [names[path] for path in paths])
    written, sizes = table.written, snapshot.files.sizes_of(list(names.values()))
    return [PlainFile(path, written.get(names[path]) == sizes[names[path]]) for path in paths]


def _full_paths(snapshot: Snapshot, root: str) -> dict[str, str]:
    """Return the names of the table's own files by their full paths."""
    own = [name for name in snapshot.files.names if not is_hidden(name)]
    if isinstance(snapshot, DeltaSnapshot):
        return {plain_path(snapshot.full_path(name)): name for name in own}
    return {f"{root}/{name}": name for name in own}


def _opened(table: StoredTable, root: str, where: str | None, version: int | None) -> set[str] | None:
    """Return the paths of the table's files that Spark opens for the condition.

    None: Spark's plan does not name them, for example because it reads cached rows."""
    from pyspark.sql import functions as f

    frame = table.format.rows(version)
    if where is not None:
        frame = frame.where(where)
    # No other files may be read instead of the table's own for a query that asks for the names of its files.
    frame = routed(table.spark, frame.select(f.input_file_name()))
    by_folder = {plain_path(folder): files for folder, files in files_by_folder(frame).items()}
    if not reads_only_files(frame) or (by_folder and root not in by_folder):
        return None
    return set(map(plain_path, by_folder.get(root, ())))  # a condition may read other tables too


def _check_table(table: StoredTable, snapshot: Snapshot) -> None:
    """Raise HedgerowError if plain files cannot show the table's columns, whichever rows are read."""
    path = table.path
    if isinstance(table.format, ParquetFolder) and (folders := table.format.partitions()):
        raise HedgerowError(
            f"others made the folder {folders[0]} in {path}, beside which Spark does not read the table's own files: "
            "move it out"
        )
    if isinstance(snapshot, DeltaSnapshot):
        snapshot.refuse()
        if snapshot.partition_columns:
            raise HedgerowError(
                f"{path} is partitioned by {', '.join(snapshot.partition_columns)}, whose values are in Delta's log "
                "only: read it as a Delta table"
            )
    if reason := next(_reasons(list(snapshot.fields.values())), None):
        raise HedgerowError(f"{path} cannot be read as plain files: {reason}")


def _reasons(schema: Any) -> Iterator[str]:
    """Yield why columns or fields have other names or values in the files; `schema`: JSON of Spark's or Delta's."""
    match schema:
        case {"name": str(name), "metadata": dict(metadata), "type": kind}:
            if metadata.get(PHYSICAL_NAME, name) != name:
                yield f"the column {name} has another name in them, by column mapping"
            if _PADDED.search(str(metadata.get(CHAR))):
                yield f"Spark pads the column {name} with spaces, as {metadata[CHAR]}"
            yield from _reasons(kind)
        case dict():
            yield from _reasons(list(schema.values()))
        case list():
            for part in schema:
                yield from _reasons(part)


def _check_rows(table: StoredTable, snapshot: Snapshot, names: list[str]) -> None:
    """Raise HedgerowError if some of these files have rows that are deleted."""
    files = snapshot.files
    with_deleted = sum(bool(files.deleted[files.place[name]]) for name in names)
    if with_deleted:
        raise HedgerowError(
            f"{with_deleted} of the files of {table.path} to be read have rows that are deleted in Delta's log only: "
            "run REORG TABLE ... APPLY (PURGE), or read it as a Delta table"
        )
