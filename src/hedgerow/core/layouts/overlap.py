"""A tree whose small leaves are kept in every large leaf beside them, so that nobody has to read his neighbour.

        N            cells   four of N rows, the one in the middle of a few
      N + N          home    the block that the middle's rows lie in
        N            copies  the other three, which have them too

Cutting may leave one side smaller than a block. Leaves that are large enough are the blocks; a small leaf lives in one
of them, and is copied to its neighbours where that pays (Yang et al., SIGMOD 2020, 6.2). A row still has one block, its
home: that is the layout. The copies are for the writing side to make and for the index to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hedgerow.core.errors import FormatError
from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.index.file_choice import Parts
from hedgerow.core.layouts.base import BlockIds, Let, Write, in_brackets, sql_of
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import Stats, regroup
from hedgerow.core.pruning.row_batch import Rows


@dataclass(frozen=True)
class OverlapLayout:
    """The tree's leaves are cells; `home[c]` is the block of cell c, `copies[c]` are further blocks that have it."""

    kind: ClassVar[str] = "overlap"
    tree: TreeLayout
    home: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        known = set(range(max(self.home, default=-1) + 1))
        right = [h in known and h not in c and known.issuperset(c) for h, c in zip(self.home, self.copies, strict=True)]
        if len(right) != self.tree.blocks or not all(right) or not (self.tree.nodes or self.home == (0,)):
            raise FormatError("an overlap says of each leaf of its tree which block is its home and which have copies")

    @property
    def features(self) -> tuple[Predicate, ...]:
        return self.tree.features

    @property
    def blocks(self) -> int:
        return max(self.home) + 1

    @cached_property
    def homes(self) -> TreeLayout:
        """The same tree with blocks in place of cells."""
        return self.tree.relabelled(self.home)

    def assign(self, rows: Rows) -> BlockIds:
        return self.homes.assign(rows)

    def assign_sql(self, write: Write = sql_of, let: Let = in_brackets) -> str:
        return self.homes.assign_sql(write, let)

    def regions(self) -> Stats:
        found = self.homes.regions()
        return regroup(found, range(len(found)), self.blocks)

    def describe(self, block: int) -> Predicate:
        return self.homes.describe(block)

    def code(self, block: int, cell: int) -> int:
        """One number for a cell copied to a block."""
        return block * len(self.home) + cell

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every cell and a block it is copied to."""
        return [(cell, block) for cell, blocks in enumerate(self.copies) for block in blocks]

    def index(self, rows: Rows) -> BlockIndex:
        """The index that the blocks, made of just the sample's rows, would have: first homes, then copies."""
        cells = self.tree.assign(rows).astype(np.int64)
        home = np.array(self.home, np.int64)
        places = [(np.arange(len(cells)), cells, home[cells])]
        for cell, block in self.pairs:
            copied = np.flatnonzero(cells == cell)
            places.append((copied, cells[copied], np.full(len(copied), ~block, np.int64)))
        at, cell_of, place_of = (np.concatenate(list(arrays)) for arrays in zip(*places, strict=True))
        found, part = np.unique(np.stack([cell_of, place_of]), axis=1, return_inverse=True)
        rows_of_parts = rows.take(at.astype(np.intp))
        stats = rows_of_parts.stats(part.reshape(-1), found.shape[1])
        cell, place = found.astype(np.int64)
        file = np.where(place >= 0, place, self.blocks + ~place)
        return BlockIndex((View(regroup(stats, file, 2 * self.blocks)), View(stats, None, Parts(cell, place, file))))

    def to_dict(self) -> dict[str, Any]:
        return {"tree": self.tree.to_dict(), "home": list(self.home), "copies": [list(c) for c in self.copies]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> OverlapLayout:
        copies = tuple(tuple(int(b) for b in blocks) for blocks in value["copies"])
        return cls(TreeLayout.from_dict(value["tree"]), tuple(int(b) for b in value["home"]), copies)
