"""A tree whose small leaves are copied into neighbouring large leaves, so that a query need not open a second block.

        N            cells   four cells of N rows, and a small cell in the middle
      N + N          home    the block that stores the rows of the small cell
        N            copies  the other three blocks, which store copies of these rows

One side of a cut may be smaller than a block. Large leaves are blocks. A small leaf has one of them as its home, and is
copied to its neighbours where that pays off (Yang et al., SIGMOD 2020, 6.2). The layout assigns every row to one block,
its home. The writer makes the copies, and the index lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hedgerow.core.errors import FormatError
from hedgerow.core.index.block_index import BlockIndex, CellIndex
from hedgerow.core.index.file_choice import CellParts
from hedgerow.core.layouts.base import BlockIds, Let, Write, in_brackets
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.combine_stats import regroup
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class OverlapLayout:
    """A tree with its leaves as cells: `home[c]` is the block of cell c, `copies[c]` are the blocks that copy it."""

    kind: ClassVar[str] = "overlap"
    tree: TreeLayout
    home: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        blocks = set(range(max(self.home, default=-1) + 1))
        valid = [
            home in blocks and home not in copies and blocks.issuperset(copies)
            for home, copies in zip(self.home, self.copies, strict=True)
        ]
        if len(valid) != self.tree.blocks or not all(valid) or not (self.tree.nodes or self.home == (0,)):
            raise FormatError(
                "an overlap layout needs a home block, and other blocks as copies, for each leaf of its tree"
            )

    @property
    def features(self) -> tuple[Predicate, ...]:
        return self.tree.features

    @property
    def blocks(self) -> int:
        return max(self.home) + 1

    @cached_property
    def homes(self) -> TreeLayout:
        """The same tree, with home blocks instead of cells."""
        return self.tree.relabelled(self.home)

    def assign(self, rows: Rows) -> BlockIds:
        return self.homes.assign(rows)

    def assign_sql(self, write: Write = feature_text, let: Let = in_brackets) -> str:
        return self.homes.assign_sql(write, let)

    def code(self, block: int, cell: int) -> int:
        """Return one number for the pair of a block and a cell that is copied to it."""
        return block * len(self.home) + cell

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of a cell and a block that has a copy of it."""
        return [(cell, block) for cell, blocks in enumerate(self.copies) for block in blocks]

    def index(self, rows: Rows) -> BlockIndex:
        """Return the index of the blocks if these rows were the whole table: first the homes, then the copies."""
        cells = self.tree.assign(rows).astype(np.int64)
        home = np.array(self.home, np.int64)
        places = [(np.arange(len(cells)), cells, home[cells])]
        for cell, block in self.pairs:
            copied = np.flatnonzero(cells == cell)
            places.append((copied, cells[copied], np.full(len(copied), ~block, np.int64)))
        at, cell_of, place_of = (np.concatenate(list(arrays)) for arrays in zip(*places, strict=True))
        parts, part_of_row = np.unique(np.stack([cell_of, place_of]), axis=1, return_inverse=True)
        rows_of_parts = rows.take(at.astype(np.intp))
        stats = rows_of_parts.stats(part_of_row.reshape(-1), parts.shape[1])
        cell, place = parts.astype(np.int64)  # a place >= 0 is a home block, ~b is the file of copies of block b
        file = np.where(place >= 0, place, self.blocks + ~place)
        return BlockIndex(regroup(stats, file, 2 * self.blocks), CellIndex(stats, CellParts(cell, place, file)))
