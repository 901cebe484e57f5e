"""Prove that a table is what was written: its files, every row and column, copies, and what the index says of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.pruning.block_stats import agree, repeat
from hedgerow.spark.compute.checksum import Checksum, checksum
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.start.progress import step
from hedgerow.spark.write.copies import copied
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.replicas import replicas_of, stands
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.settings_fit import under

if TYPE_CHECKING:
    from hedgerow.tables.parquet.stored import StoredParquet

_FILES = 8


def verified(table: StoredParquet, seed: int) -> dict[str, Any]:
    """What was checked; HedgerowError names what is not as it was written."""
    present, sizes = table.present(), table.known.by_name
    _tell(table, [f"the file {n} is not Hedgerow's" for n, size in present.items() if sizes.get(n) != size])
    expected, some = _proved(table, seed)
    return {
        "path": table.path,
        "rows": expected.rows,
        "checksum": f"{expected.low:x}-{expected.high:x}",
        "files": len(sizes),
        "files_with_statistics_checked": some,
        "replicas": {name: _replica(table, name, replica, seed) for name, replica in replicas_of(table).items()},
    }


def _replica(table: StoredParquet, name: str, replica: StoredParquet, seed: int) -> str:
    if not stands(table, replica, table.present()):
        return "not up to date, so not read"
    _proved(replica, seed)
    if replica.manifest["checksum"] != table.manifest["checksum"]:
        raise HedgerowError(f"the replica {name} of {table.path} has other rows than the table")
    return "as the table"


def _proved(table: StoredParquet, seed: int) -> tuple[Checksum, int]:
    """Of the files that the index knows: the checksum of their rows, and of how many the statistics hold."""
    present, names = table.present(), table.known.names
    _tell(table, [f"the file {n} is missing" for n in names if n not in present])
    expected = Checksum(**table.manifest["checksum"])
    with step(table.spark, "comparing all rows"):
        found = checksum(table.frame([n for n in names if not is_hidden(n)]))
    if found != expected:
        _tell(table, [f"its rows are not the source's: {found}, but {expected} went in"])
    _tell(table, _wrong_copies(table))
    some = sorted(random.Random(seed).sample(range(len(names)), min(_FILES, len(names))))
    if some:
        with step(table.spark, "comparing statistics"):
            _tell(table, _lies(table, some))
    return expected, len(some)


def _wrong_copies(table: StoredParquet) -> list[str]:
    """The rows that should be copies, made again from the table's own, against those that lie there."""
    hidden = [n for n in table.known.names if is_hidden(n)]
    if not hidden:
        return []
    layout = table.layout
    assert isinstance(layout, OverlapLayout)
    own = table.frame([n for n in table.known.names if not is_hidden(n)])
    with step(table.spark, "comparing copies"), under(table.spark, table.manifest["settings"]):
        same = checksum(copied(own, layout, table.schema)) == checksum(table.with_copies(hidden))
    return [] if same else ["the copies in several blocks are not of the rows that they should be"]


def _lies(table: StoredParquet, places: Sequence[int]) -> list[str]:
    """Of these files, a sentence for each of which the index does not say what a fresh look does."""
    names = [table.known.names[i] for i in places]
    with under(table.spark, table.manifest["settings"]):
        fresh = collect_files(table.frame(names), table.statistics, table.schema, names)
    said = repeat(table.stored_index.blocks, np.array(places))
    same = agree(said, fresh)
    same = same | ((said.rows == 0) & (fresh.rows == 0))  # of no rows anything may be said
    return [f"the statistics of {name} are wrong" for name, is_same in zip(names, same, strict=True) if not is_same]


def _tell(table: StoredParquet, wrong: Sequence[str]) -> None:
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise HedgerowError(f"{table.path} is not as it was written: {wrong[0]}{more}")
