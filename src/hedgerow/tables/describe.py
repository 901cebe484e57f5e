"""Describes a table: its facts, the origin of its layout, and the files of the layout that still exist."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.tables.indexed_files import IndexedFiles
from hedgerow.tables.settings_fit import consequence
from hedgerow.tables.stored import StoredTable

_SHOWN = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")


def facts_of(table: StoredTable) -> dict[str, Any]:
    """Return the table's facts as plain values."""
    indexed, origin = table.indexed(), table.newest.entry.origin
    snapshot, files, now = indexed.snapshot, indexed.files, settings(table.spark)
    visible = files.take(np.flatnonzero(files.visible).tolist())
    blocks = sorted(_rows_of_blocks(table, indexed).values())
    sizes = blocks or [0]
    stored = [part.stored_index.blocks for part in table.parts]
    return {
        "path": table.path,
        "table": table.name,
        "format": table.format.kind,
        **({} if snapshot.version is None else {"version": snapshot.version}),
        **{key: origin[key] for key in _SHOWN if key in origin},
        "layout": table.layout.kind,
        "blocks": len(blocks),
        "rows": int(visible.rows.sum()),
        "copied_rows": int(files.rows.sum() - visible.rows.sum()),
        "rows_per_block": {"least": sizes[0], "median": sizes[len(sizes) // 2], "most": sizes[-1]},
        "files": len(visible),
        "bytes": int(files.sizes.sum()),
        **_still_in_place(table, indexed),
        "statistics": sorted({name for stats in stored for name in stats.terms}),
        "features": len({name for stats in stored for name in stats.conditions}),
        "lookups": _lookups(table),
        "settings": next(filter(None, (consequence(part.entry.settings, now) for part in table.parts)), None),
    }


def _lookups(table: StoredTable) -> list[dict[str, Any]]:
    """Return the facts of the filters for look-ups; those whose files are not as they were written are damaged."""
    side = table.format.side
    return [
        {**lookup.facts(), "damaged": not lookup.sizes.items() <= side.sizes(lookup.name).items()}
        for part in table.parts
        for lookup in part.entry.lookups
    ]


def _rows_of_blocks(table: StoredTable, indexed: IndexedFiles) -> Counter[tuple[str, int, str]]:
    """Return the rows of each block of each layout; a file whose name has no block counts as a block of its own."""
    rows, present = Counter[tuple[str, int, str]](), indexed.files
    for part in table.parts:
        files = part.known
        for i in np.flatnonzero(files.visible & (files.rows > 0)).tolist():
            name, block = files.names[i], int(files.blocks[i])
            place = indexed.snapshot.files.place_of(name, int(files.sizes[i]))
            if place is not None:
                rows[part.entry.layout, block, name if block < 0 else ""] += int(present.rows[place])
    return rows


def _still_in_place(table: StoredTable, indexed: IndexedFiles) -> dict[str, Any]:
    """Return the facts about the files of the last completed write, and about files without an index.

    layout_files, layout_files_left: the number of files of this write, and of those that still exist.
    missing_files: the files of this write that do not exist; if only Hedgerow changes the table, of all writes.
    unknown_rows: the share of the table's rows in files without an index.
    """
    files, newest = indexed.files, table.newest.known.sizes_by_name
    expected = newest if table.format.is_shared else table.written
    missing = sorted(n for n, size in expected.items() if indexed.snapshot.files.place_of(n, size) is None)
    unknown = np.flatnonzero(~indexed.is_known & indexed.is_visible)
    rows = max(1, int(files.rows[files.visible].sum()))
    return {
        "layout_files": len(newest),
        "layout_files_left": len(newest) - len(newest.keys() & set(missing)),
        "missing_files": missing,
        "unknown_files": sorted(files.names[i] for i in unknown.tolist()),
        "unknown_rows": round(float(files.rows[unknown].sum() / rows), 4),
    }
