"""The rows of the files of all parts of a table, as far as they are known, beside the parts' indexes as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.joined_index import JoinedIndex
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS
from hedgerow.tables.part import JoinedParts


@dataclass(frozen=True)
class TableIndex:
    """The index of all parts. Entry i of every array is file i: the files of the first part, then of the next."""

    parts: Sequence[JoinedParts]

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.rows)

    @cached_property
    def joined(self) -> JoinedIndex:
        return JoinedIndex([part.index for part in self.parts])

    @cached_property
    def rows(self) -> Ints:
        """The rows of each file; UNKNOWN_ROWS where the session may read others, or a later entry has the same name."""
        names = [name for part in self.parts for name in part.known.names]
        is_last = np.zeros(len(names), bool)
        is_last[list({name: place for place, name in enumerate(names)}.values())] = True
        is_sure = np.concatenate([np.zeros(0, bool), *(part.reads_alike for part in self.parts)])
        rows = np.concatenate([np.zeros(0, np.int64), *(part.index.blocks.rows for part in self.parts)])
        return np.where(is_last & is_sure, rows, UNKNOWN_ROWS)

    def rows_left(self, read_once: Bools, deleted: Mapping[int, int]) -> Ints:
        """Return the rows of each file that a scan reads, or UNKNOWN_ROWS.

        Args:
            read_once: True for each file that the scan lists exactly once.
            deleted: the deleted rows of files that have any; a negative number if it is not known how many.
        """
        left = np.where(read_once, self.rows, UNKNOWN_ROWS)
        for file, rows in deleted.items():
            if left[file] != UNKNOWN_ROWS:
                left[file] = left[file] - rows if 0 <= rows <= left[file] else UNKNOWN_ROWS
        return left
