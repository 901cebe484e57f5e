"""Keeps full copies of a table in other layouts: lists the current copies, and brings copies up to date.

    orders/  part-00000-....parquet ...
             _hedgerow/replicas/second/  part-00000-....parquet ...
                                         _hedgerow/state-1.json     "copy_of": the id of the table's last write

A replica is a managed table of its own that plain readers do not see. It is current if it has the rows of all writes
that the table's newest state lists, and the files of these writes are unchanged. Only a current replica is read instead
of the table. After a crash between an append to the table and the same append to the replica, the replica is stale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.spark.start.session import first_line, is_remote, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.present_files import PresentFiles
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.append import Overtaken, append, finish_appends
from hedgerow.tables.parquet.folder import ParquetFolder, open_folder
from hedgerow.tables.state import TableState
from hedgerow.tables.stored import StoredTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPLICAS = "_hedgerow/replicas"
_REPLICA_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_MAX_TRIES = 3


def replica_path(table_path: str, name: str) -> str:
    """Return the path of the replica of that name."""
    if not _REPLICA_NAME.fullmatch(name):
        raise LayoutError(f"a replica's name is made of letters, digits, _ and -, not {name!r}")
    return f"{table_path}/{REPLICAS}/{name}"


def replicas_of(spark: SparkSession, path: str) -> dict[str, StoredTable]:
    """Return all replicas by name, current or not; none over Spark Connect, where folders cannot be listed."""
    if is_remote(spark):
        return {}
    replicas = {}
    for name, size in sorted(Folder(spark, f"{path}/{REPLICAS}").sizes().items()):
        if size < 0 and _REPLICA_NAME.fullmatch(name):
            try:
                replicas[name] = StoredTable(*open_folder(spark, replica_path(path, name)))
            except HedgerowError:
                continue  # it is damaged, or of another version of Hedgerow; queries work without it
    return replicas


def current_replicas(table: StoredTable, present: PresentFiles) -> dict[str, StoredTable]:
    """Return the replicas that have exactly the rows of the table; `present`: its files now."""
    replicas = replicas_of(table.spark, table.path)
    return {name: replica for name, replica in replicas.items() if is_current(table, replica, present)}


def is_current(table: StoredTable, replica: StoredTable, present: PresentFiles) -> bool:
    """True if the replica has exactly the rows of the table; `present`: the table's files now."""
    if replica.state.copy_of != table.state.last_write or not _is_whole(table, present):
        return False
    now = replica.format.snapshot().files
    return all(now.place_of(name, size) is not None for name, size in replica.written.items())


def _is_whole(table: StoredTable, present: PresentFiles) -> bool:
    """True if the table has exactly the files that its state lists."""
    return dict(zip(present.names, present.sizes.tolist(), strict=True)) == table.written


def catch_up(folder: ParquetFolder, state: TableState) -> list[str]:
    """Append the table's new rows to each replica; return a sentence for each replica where that failed."""
    finish_appends(folder)
    table, failed = StoredTable(folder, state), []
    failures: tuple[type[Exception], ...] = (HedgerowError, *spark_errors())
    for name in replicas_of(folder.spark, folder.path):
        try:
            _catch_up(table, name)
        except failures as error:
            failed.append(f"{name} is not read until it is up to date: {first_line(error)}")
    return failed


def _catch_up(table: StoredTable, name: str) -> None:
    """Append the table's new rows to a replica; start again if another process does the same at the same time."""
    for _ in range(_MAX_TRIES):
        folder, state = open_folder(table.spark, replica_path(table.path, name))
        finish_appends(folder)
        if state.copy_of == table.state.last_write:
            return
        new = table.format.snapshot().frame(_missing(table, state))
        try:
            append(folder, folder.parts[-1], new, table.state)
        except Overtaken:
            continue
        return
    raise HedgerowError("other processes write to it all the time")


def _missing(table: StoredTable, replica: TableState) -> list[str]:
    """Return the files of the table whose rows the replica does not have."""
    writes = [write for part in table.parts for write in part.known.writes]
    ids, names = [one for one, _ in writes], [name for part in table.parts for name in part.known.names]
    if replica.copy_of not in ids or not _is_whole(table, table.format.snapshot().files):
        raise HedgerowError("the table's files were changed by others: apply it again")
    copied = sum(files for _, files in writes[: ids.index(replica.copy_of) + 1])
    return [name for name in names[copied:] if not is_hidden(name)]


def describe_replicas(table: StoredTable, present: PresentFiles) -> list[dict[str, Any]]:
    """Return the facts of the replicas for `describe`."""
    return [
        {"name": name, **_facts(replica), "up_to_date": is_current(table, replica, present)}
        for name, replica in replicas_of(table.spark, table.path).items()
    ]


def _facts(replica: StoredTable) -> Mapping[str, Any]:
    origin, sizes = replica.newest.entry.origin, replica.written.values()
    shown = {key: origin[key] for key in ("learner", "given", "created") if key in origin}
    return {**shown, "layout": replica.layout.kind, "files": len(sizes), "bytes": sum(sizes)}
