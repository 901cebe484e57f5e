"""How rows are written into files, and the words by which tables store that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Writing:
    """Appends follow what `apply` was told, so a table stores it.

    Args:
        max_block_rows: a block with more rows is written as several files.
        sort_by: the columns that rows of a file are sorted by.
        by_key: sort by the key of the layout first, where it has one.
        options: for Spark's writer.
    """

    max_block_rows: int | None = None
    sort_by: tuple[str, ...] = ()
    by_key: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """These keys are stored: they stay what they are, whatever the fields are called."""
        return {
            "max_block_rows": self.max_block_rows,
            "sort_by": list(self.sort_by),
            "by_key": self.by_key,
            "options": dict(self.options),
        }

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Writing:
        """What `to_dict` made, in this version of Hedgerow or an earlier one that stored fewer keys."""
        return Writing(
            stored.get("max_block_rows"),
            tuple(stored.get("sort_by") or ()),
            bool(stored.get("by_key", False)),
            dict(stored.get("options") or {}),
        )
