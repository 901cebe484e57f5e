"""Keeps full copies of a table in other layouts: finds the current ones, picks one for a query, brings them up to date.

    orders/  part-00000-....parquet ...
             _hedgerow/replicas/second/  part-00000-....parquet ...
                                         _hedgerow/manifest-1.json     "copy_of": files-2-<id>.arrow, the table's list

A replica is a managed table of its own that plain readers do not see. It is current, and so may be read instead of the
table, while it is a copy of the files that the table's newest manifest names and these files are unchanged. A crash
between an append to the table and the same append to the replica leaves the replica stale, hence unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedgerow.core.arrays import Bools
from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.session import first_line, is_remote, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import KnownFiles, is_hidden
from hedgerow.tables.parquet.drafts import finish_appends
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.parquet.write import append_to_replica, commit
from hedgerow.tables.sealed import read_sealed

REPLICAS = "_hedgerow/replicas"
_REPLICA_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_MAX_TRIES = 3


@dataclass(frozen=True)
class Opening:
    """The files that a query opens, of the table itself or of one of its replicas."""

    table: StoredParquet
    files: tuple[str, ...]
    opened: Bools  # for each entry of the index, whether its file is opened
    copied_cells: tuple[tuple[int, int], ...] | None = None  # (block, cell) pairs to read of opened copies; None: all


def opening(
    table: StoredParquet, p: Predicate, columns: Sequence[str] | None = None, under: Mapping[str, str] | None = None
) -> Opening:
    """The files to open for rows on which `p` is TRUE: of the table itself, copies included, or of a replica.

    `under`: the settings of the query, by default the session's.
    """
    now, under = table.present(), settings(table.spark) if under is None else under
    current = [r for r in replicas_of(table).values() if is_current(table, r, now)]
    openings = [opening_in(table, p, now, under)]
    openings += [opening_in(r, p, r.known.sizes_by_name, under) for r in current]
    return cheapest(openings, read_columns(columns, p))


def opening_in(table: StoredParquet, p: Predicate, now: Mapping[str, int], under: Mapping[str, str]) -> Opening:
    """The files to open in this one table; `now`: its files with their sizes.

    Changed and unknown files are opened. Then copies are not: they may hold rows that are gone."""
    known = table.known.sizes_by_name
    same = {n for n, size in known.items() if now.get(n) == size}
    choice = table.index_under(under).choose_files(p, table.known.sizes, copies=len(same) == len(known))
    opened = {n for n, is_open in zip(known, choice.opened, strict=True) if is_open}
    files = [n for n in now if (n in opened if n in same else not is_hidden(n))]
    return Opening(table, tuple(sorted(files)), choice.opened, choice.copied_cells)


def replica_path(table_path: str, name: str) -> str:
    """The path of the replica of that name."""
    if not _REPLICA_NAME.fullmatch(name):
        raise LayoutError(f"a replica's name is made of letters, digits, _ and -, not {name!r}")
    return f"{table_path}/{REPLICAS}/{name}"


def replicas_of(table: StoredParquet) -> dict[str, StoredParquet]:
    """All replicas by name, current or not; none over Spark Connect, where folders cannot be listed."""
    if is_remote(table.spark):
        return {}
    replicas = {}
    for name, size in sorted(Folder(table.spark, f"{table.path}/{REPLICAS}").sizes().items()):
        if size < 0 and _REPLICA_NAME.fullmatch(name):
            try:
                replicas[name] = StoredParquet.open(table.spark, replica_path(table.path, name))
            except HedgerowError:
                continue  # damaged, or of a newer Hedgerow: queries work without it
    return replicas


def is_current(table: StoredParquet, replica: StoredParquet, present: Mapping[str, int]) -> bool:
    """Whether the replica has exactly the rows of the table; `present`: the table's files now, with sizes."""
    if replica.manifest.copy_of != table.manifest.files or dict(present) != table.known.sizes_by_name:
        return False
    own, now = replica.known.sizes_by_name, replica.present()
    return all(now.get(name) == size for name, size in own.items())


def cheapest(openings: Sequence[Opening], columns: Sequence[str] | None) -> Opening:
    """The opening that reads the fewest bytes of these columns (None: all), or rows if bytes are unknown.

    The first one wins a tie."""
    by_bytes = columns is None or all(o.table.known.columns or not len(o.table.known) for o in openings)

    def cost(opening: Opening) -> int:
        known = opening.table.known
        return known.bytes_read(columns, opening.opened) if by_bytes else int(known.rows[opening.opened].sum())

    return min(openings, key=cost)


def catch_up(table: StoredParquet) -> list[str]:
    """Appends the table's new rows to each replica; returns a sentence for each replica where that failed."""
    finish_appends(table)
    failed = []
    for name in replicas_of(table):
        try:
            _catch_up(table, name)
        except spark_errors() as error:
            failed.append(f"{name} is not read until it is up to date: {first_line(error)}")
        except HedgerowError as error:
            failed.append(f"{name} is not read until it is up to date: {error}")
    return failed


def _catch_up(table: StoredParquet, name: str) -> None:
    """If two processes do it at once, the number of the manifest lets one of them win, and the other starts again."""
    for _ in range(_MAX_TRIES):
        replica = StoredParquet.open(table.spark, replica_path(table.path, name))
        finish_appends(replica)
        if replica.manifest.copy_of == table.manifest.files:
            return
        new = _missing(table, replica)
        if not new:  # only the table's index is another
            manifest = replace(replica.manifest, number=replica.manifest.number + 1).as_copy_of(table.manifest)
            kept = replica.stored_index, replica.known
            if commit(replica.spark, replica.path, manifest, *kept, after=replica.manifest):
                return
        elif append_to_replica(replica, table.frame(new), table):
            return
    raise HedgerowError("others write to it all the time")


def _missing(table: StoredParquet, replica: StoredParquet) -> list[str]:
    """The files of the table that were added after the replica was written; they hold exactly the appended rows."""
    side = Folder(table.spark, f"{table.path}/_hedgerow")
    copied_list = str(replica.manifest.copy_of)
    if copied_list not in side.sizes():
        raise HedgerowError("it has fallen too far behind: apply it again")
    copied = KnownFiles.of_bytes(read_sealed(side, copied_list, replica.manifest.seals), table.path)
    before, now = copied.sizes_by_name, table.known.sizes_by_name
    if any(now.get(n) != size for n, size in before.items()) or dict(table.present()) != now:
        raise HedgerowError("the table's files were changed by others: apply it again")
    return [n for n in now if n not in before and not is_hidden(n)]


def describe_replicas(table: StoredParquet, present: Mapping[str, int]) -> list[dict[str, Any]]:
    """The replicas' part of `describe`."""
    return [
        {
            "name": name,
            **{key: r.manifest.origin[key] for key in ("learner", "given", "created") if key in r.manifest.origin},
            "layout": r.layout.kind,
            "files": len(r.known),
            "bytes": int(r.known.sizes.sum()),
            "up_to_date": is_current(table, r, present),
        }
        for name, r in replicas_of(table).items()
    ]
