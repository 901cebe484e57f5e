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
from typing import Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.learning.score import top
from hedgerow.core.predicates.nodes import Predicate, columns
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.pruning.block_stats import Bools
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.session import first_line, is_remote, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import KnownFiles, is_hidden
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.parquet.write import add_copies

REPLICAS = "_hedgerow/replicas"
_NAME = re.compile(r"[A-Za-z0-9][\w-]*")
_TRIES = 3


@dataclass(frozen=True)
class Opening:
    """What a query opens, of the table itself or of one of its replicas."""

    table: StoredParquet
    files: tuple[str, ...]
    known: Bools  # of the index's entries, those that are opened
    taken: tuple[tuple[int, int], ...] | None = None  # of opened copies the blocks and cells that are read, None: all


def opening(
    table: StoredParquet, p: Predicate, columns: Sequence[str] | None = None, under: Mapping[str, str] | None = None
) -> Opening:
    """What to open for rows on which `p` is TRUE: of the table itself, copies included, or of a replica.

    `under`: the settings that count, by default the session's.
    """
    now, under = table.present(), settings(table.spark) if under is None else under
    found = [own_opening(table, p, now, under)]
    found += [own_opening(r, p, r.known.by_name, under) for r in replicas_of(table).values() if stands(table, r, now)]
    return cheapest(found, read_columns(columns, p))


def own_opening(table: StoredParquet, p: Predicate, now: Mapping[str, int], under: Mapping[str, str]) -> Opening:
    """Files that are not as we know them are opened; copies may then be of rows that are gone, and are not."""
    known = table.known.by_name
    same = {n for n, size in known.items() if now.get(n) == size}
    found = table.index_under(under).cover(p, table.known.sizes, copies=len(same) == len(known))
    opened = {n for n, is_open in zip(known, found.opened, strict=True) if is_open}
    files = [n for n in now if (n in opened if n in same else not is_hidden(n))]
    return Opening(table, tuple(sorted(files)), found.opened, found.taken)


def read_columns(reads: Sequence[str] | None, p: Predicate) -> list[str] | None:
    """The top-level columns that a query reads, those of its condition included; None: all."""
    return None if reads is None else sorted({*map(top, reads), *(quote_name(c.path[0]) for c in columns(p))})


def place_of(table_path: str, name: str) -> str:
    """Where the replica of that name lies."""
    if not _NAME.fullmatch(name):
        raise LayoutError(f"a replica's name is made of letters, digits, _ and -, not {name!r}")
    return f"{table_path}/{REPLICAS}/{name}"


def replicas_of(table: StoredParquet) -> dict[str, StoredParquet]:
    """By name, whether or not they may be read. Over Spark Connect folders cannot be listed, so there are none."""
    if is_remote(table.spark):
        return {}
    found = {}
    for name, size in sorted(Folder(table.spark, f"{table.path}/{REPLICAS}").sizes().items()):
        if size < 0 and _NAME.fullmatch(name):
            try:
                found[name] = StoredParquet.open(table.spark, place_of(table.path, name))
            except HedgerowError:
                continue  # damaged, or of a newer Hedgerow: nobody needs it
    return found


def stands(table: StoredParquet, replica: StoredParquet, present: Mapping[str, int]) -> bool:
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


def catch_up(table: StoredParquet) -> list[str]:
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


def _catch_up(table: StoredParquet, name: str) -> None:
    """Two who do it at once: the manifest's number lets one of them win, and the other looks again."""
    for _ in range(_TRIES):
        replica = StoredParquet.open(table.spark, place_of(table.path, name))
        if replica.manifest.get("copy_of") == table.manifest["files"]:
            return
        new = _missing(table, replica)
        if add_copies(replica, table.frame(new), table):
            return
    raise HedgerowError("others write to it all the time")


def _missing(table: StoredParquet, replica: StoredParquet) -> list[str]:
    """Files of the table that came after the replica; their rows are read from there, so they are what was appended."""
    side = Folder(table.spark, f"{table.path}/_hedgerow")
    noted = str(replica.manifest.get("copy_of"))
    if noted not in side.sizes():
        raise HedgerowError("it has fallen too far behind: apply it again")
    before, now = KnownFiles.of_bytes(side.read(noted), table.path).by_name, table.known.by_name
    if any(now.get(n) != size for n, size in before.items()) or dict(table.present()) != now:
        raise HedgerowError("the table's files were changed by others: apply it again")
    return [n for n in now if n not in before and not is_hidden(n)]


def described(table: StoredParquet, present: Mapping[str, int]) -> list[dict[str, Any]]:
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
        for name, r in replicas_of(table).items()
    ]
