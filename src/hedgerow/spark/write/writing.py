"""How rows are written into files: the options of `apply` that a table keeps for later appends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Writing:
    """The options of `apply` for writing files. A table stores them, so that appends write the same way.

    Args:
        max_block_rows: a file with more rows is written as several files.
        blocks_per_file: so many neighbouring blocks share a file, one after the other; they follow from `file_bytes`.
        group_rows: the most rows of a row group, 0 for no limit.
        sort_by: the columns that rows of a file are sorted by.
        by_key: sort by the key of the layout first, if it has one.
        options: for Spark's writer.
        lookup_share: the share of the files' bytes that filters for look-ups may add.
    """

    max_block_rows: int | None = None
    blocks_per_file: int = 1
    group_rows: int = 0
    sort_by: tuple[str, ...] = ()
    by_key: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    lookup_share: float = 0.0
    file_bytes: str | None = None
