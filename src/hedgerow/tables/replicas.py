"""Full copies of a table in other layouts: which may stand for it, which one a query reads, how they catch up.

    orders/  part-00000-....parquet ...
             _hedgerow/replicas/second/  part-00000-....parquet ...
                                         _hedgerow/manifest-1.json     "copy_of": files-2-<id>.arrow, the table's list

A replica is a managed table of its own, out of every plain reader's sight. It stands for the table only while it is a
copy of exactly what lies there: of the list of files that the table's newest manifest names, and these files unchanged.
So whoever dies between an append to the table and one to the replica leaves a replica that nobody reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.stats import Bools
from hedgerow.spark.checksum import Checksum
from hedgerow.spark.folder import Folder
from hedgerow.spark.session import first_line, is_remote, spark_errors
from hedgerow.tables.files import KnownFiles, is_hidden

if TYPE_CHECKING:
    from hedgerow.tables.parquet import ParquetTable

REPLICAS = "_hedgerow/replicas"
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_TRIES = 3


@dataclass(frozen=True)
class Opening:
    """What a query opens, of the table itself or of one of its replicas."""

    table: ParquetTable
    files: tuple[str, ...]
    known: Bools  # of the index's entries, those that are opened
    taken: tuple[tuple[int, int], ...] | None = None  # of opened copies the blocks and cells that are read, None: all


def place_of(table_path: str, name: str) -> str:
    """Where the replica of that name lies."""
    if not _NAME.fullmatch(name):
        raise LayoutError(f"a replica's name is made of letters, digits, _ and -, not {name!r}")
    return f"{table_path}/{REPLICAS}/{name}"


def replicas_of(table: ParquetTable) -> dict[str, ParquetTable]:
    """By name, whether or not they may be read. Over Spark Connect folders cannot be listed, so there are none."""
    if is_remote(table.spark):
        return {}
    found = {}
    for name, size in sorted(Folder(table.spark, f"{table.path}/{REPLICAS}").sizes().items()):
        if size < 0 and _NAME.fullmatch(name):
            try:
                found[name] = type(table).open(table.spark, place_of(table.path, name))
            except HedgerowError:
                continue  # damaged, or of a newer Hedgerow: nobody needs it
    return found


def stands(table: ParquetTable, replica: ParquetTable, present: Mapping[str, int]) -> bool:
    """Whether the replica has exactly the rows of the table; `present`: the table's files now, with sizes."""
    if replica.manifest.get("copy_of") != table.manifest["files"] or dict(present) != table.known.by_name:
        return False
    own, now = replica.known.by_name, replica.present()
    return all(now.get(name) == size for name, size in own.items())


def cheapest(openings: Sequence[Opening], columns: Sequence[str] | None) -> Opening:
    """The one that reads the fewest bytes of these columns (None: all), or rows where no file tells; else the first."""
    by_bytes = columns is None or all(o.table.known.columns or not len(o.table.known) for o in openings)

    def cost(opening: Opening) -> int:
        known = opening.table.known
        return known.bytes_read(columns, opening.known) if by_bytes else int(known.rows[opening.known].sum())

    return min(openings, key=cost)


def check_copy(table: ParquetTable, went_in: Checksum) -> None:
    """What was written has to be the table's rows."""
    if went_in != Checksum(**table.manifest["checksum"]):
        wanted = Checksum(**table.manifest["checksum"])
        raise HedgerowError(f"these are not the rows of {table.path}: {went_in}, but the table has {wanted}")


def catch_up(table: ParquetTable) -> list[str]:
    """Each replica gets the files that the table has more than it; a sentence for each that could not."""
    failed = []
    for name in replicas_of(table):
        try:
            _catch_up(table, name)
        except spark_errors() as error:
            failed.append(f"{name} is not read until it is up to date: {first_line(error)}")
        except HedgerowError as error:
            failed.append(f"{name} is not read until it is up to date: {error}")
    return failed


def _catch_up(table: ParquetTable, name: str) -> None:
    """Two who do it at once: the manifest's number lets one of them win, and the other looks again."""
    for _ in range(_TRIES):
        replica = type(table).open(table.spark, place_of(table.path, name))
        if replica.manifest.get("copy_of") == table.manifest["files"]:
            return
        new = _missing(table, replica)
        if replica.add_copies(table.frame(new), table):
            return
    raise HedgerowError("others write to it all the time")


def _missing(table: ParquetTable, replica: ParquetTable) -> list[str]:
    """Files of the table that came after the replica; their rows are read from there, so they are what was appended."""
    side = Folder(table.spark, f"{table.path}/_hedgerow")
    noted = str(replica.manifest.get("copy_of"))
    if noted not in side.sizes():
        raise HedgerowError("it has fallen too far behind: apply it again")
    before, now = KnownFiles.of_bytes(side.read(noted), table.path).by_name, table.known.by_name
    if any(now.get(n) != size for n, size in before.items()) or dict(table.present()) != now:
        raise HedgerowError("the table's files were changed by others: apply it again")
    return [n for n in now if n not in before and not is_hidden(n)]


def described(table: ParquetTable, present: Mapping[str, int]) -> list[dict[str, Any]]:
    """What `describe` tells of replicas."""
    return [
        {
            "name": name,
            **{key: r.manifest[key] for key in ("learner", "given", "created") if key in r.manifest},
            "layout": r.layout.kind,
            "files": len(r.known),
            "bytes": int(r.known.sizes.sum()),
            "up_to_date": stands(table, r, present),
        }
        for name, r in table.replicas.items()
    ]
