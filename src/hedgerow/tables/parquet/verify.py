"""Verifies that a Parquet table is as it was written.

Compares the names and sizes of its files, all rows and columns, the copied rows, the replicas, and the statistics of
some files.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.without_columns import mentions, without_columns
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.pruning.block_stats import agree, repeat
from hedgerow.spark.compute.checksum import Checksum, checksum
from hedgerow.spark.compute.collect_stats import collect_files, with_words
from hedgerow.spark.start.progress import step
from hedgerow.spark.write.copies import copied
from hedgerow.tables.known_files import is_hidden
from hedgerow.tables.parquet.replicas import is_current, replicas_of
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.settings_fit import settings_as_written
from hedgerow.tables.stored_joins import stale

_MAX_CHECKED_FILES = 8  # whose statistics are collected again


def verified(table: StoredParquet, seed: int) -> dict[str, Any]:
    """A report of what was checked; HedgerowError names the first difference."""
    present, sizes = table.present(), table.known.sizes_by_name
    _raise_first(table, [f"the file {n} is not Hedgerow's" for n, size in present.items() if sizes.get(n) != size])
    expected, checked_files = _compared(table, seed)
    return {
        "path": table.path,
        "rows": expected.rows,
        "checksum": f"{expected.low:x}-{expected.high:x}",
        "files": len(sizes),
        "files_with_statistics_checked": checked_files,
        "replicas": {name: _verified_replica(table, name, r, seed) for name, r in replicas_of(table).items()},
    }


def _verified_replica(table: StoredParquet, name: str, replica: StoredParquet, seed: int) -> str:
    if not is_current(table, replica, table.present()):
        return "not up to date, so not read"
    _compared(replica, seed)
    if replica.manifest.checksum != table.manifest.checksum:
        raise HedgerowError(f"the replica {name} of {table.path} has other rows than the table")
    return "as the table"


def _compared(table: StoredParquet, seed: int) -> tuple[Checksum, int]:
    """Compares the indexed files; returns the checksum of their rows, and how many files' statistics were compared."""
    present, names = table.present(), table.known.names
    _raise_first(table, [f"the file {n} is missing" for n in names if n not in present])
    expected = table.manifest.checksum
    with step(table.spark, "comparing all rows"):
        actual = checksum(table.frame([n for n in names if not is_hidden(n)]))
    if actual != expected:
        _raise_first(table, [f"its rows are not the source's: {actual}, but {expected} went in"])
    _raise_first(table, _wrong_copies(table))
    places = sorted(random.Random(seed).sample(range(len(names)), min(_MAX_CHECKED_FILES, len(names))))
    if places:
        with step(table.spark, "comparing statistics"):
            _raise_first(table, _wrong_statistics(table, places))
    return expected, len(places)


def _wrong_copies(table: StoredParquet) -> list[str]:
    """A sentence if the stored copies differ from copies that are made again from the table's own rows."""
    hidden = [n for n in table.known.names if is_hidden(n)]
    if not hidden:
        return []
    layout = table.layout
    assert isinstance(layout, OverlapLayout)
    own = table.frame([n for n in table.known.names if not is_hidden(n)])
    with step(table.spark, "comparing copies"), settings_as_written(table.spark, table.manifest.settings):
        same = checksum(copied(own, layout, table.schema)) == checksum(table.with_copies(hidden))
    return [] if same else ["the copies in several blocks are not of the rows that they should be"]


def _wrong_statistics(table: StoredParquet, places: Sequence[int]) -> list[str]:
    """A sentence for each of these files whose stored statistics differ from freshly collected ones."""
    names, items = [table.known.names[i] for i in places], table.manifest.statistics
    joins = table.usable_joins
    lost = stale(table.manifest.joined, joins)
    with settings_as_written(table.spark, table.manifest.settings):
        kept = [i for i in items if not mentions(i, lost)]
        stored = repeat(without_columns(table.stored_index, items, lost).blocks, np.array(places))
        fresh = collect_files(table.frame(names), kept, table.schema, names, joins=joins)
        fresh = with_words(fresh, table.frame(names), stored, names)
    same = agree(stored, fresh)
    same = same | ((stored.rows == 0) & (fresh.rows == 0))  # any statistics hold for no rows
    return [f"the statistics of {name} are wrong" for name, is_same in zip(names, same, strict=True) if not is_same]


def _raise_first(table: StoredParquet, differences: Sequence[str]) -> None:
    if differences:
        more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
        raise HedgerowError(f"{table.path} is not as it was written: {differences[0]}{more}")
