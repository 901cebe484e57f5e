"""The block index of a written table: decides which blocks a predicate has to open.

The index has several views of the table. The entries of a view cover all rows, and an entry lies in one or more
blocks. The first view has the blocks themselves as its entries; others have finer cells.
A block has to be opened only if every view requires it.

If rows are stored in several blocks (an overlap), one view has parts of cells as its entries, each with its cell and
its place. Then a query opens only as many blocks as it needs to read every matching row once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.file_choice import CellParts, FileChoice, WholePlaces, choose_files
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import Stats, concat
from hedgerow.core.pruning.evaluator import may_match


@dataclass(frozen=True)
class Membership:
    """The blocks of each entry: entry i lies in `blocks[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    blocks: Ints

    @staticmethod
    def build(blocks_of: Sequence[Sequence[int]]) -> Membership:
        offsets = np.cumsum([0, *map(len, blocks_of)], dtype=np.int64)
        return Membership(offsets, np.array([b for of in blocks_of for b in of], np.int64))

    def followed_by(self, more: Membership, n: int) -> Membership:
        """The entries of both; block i of `more` becomes block `n + i`."""
        offsets = np.concatenate([self.offsets, more.offsets[1:] + self.offsets[-1]])
        return Membership(offsets, np.concatenate([self.blocks, more.blocks + n]))


@dataclass(frozen=True)
class View:
    """Statistics of entries, and the blocks where these lie; without a membership, entry i is block i."""

    stats: Stats
    membership: Membership | None = None
    parts: CellParts | None = None

    def to_open(self, p: Predicate, n: int) -> Bools:
        """For each of n blocks: may it contain a row on which `p` is TRUE, as far as this view can decide?"""
        entries = may_match(p, self.stats)
        if self.parts is not None:
            blocks = np.zeros(n, bool)
            blocks[self.parts.file[entries]] = True
            return blocks
        if self.membership is None:
            return entries
        blocks = np.zeros(n, bool)
        blocks[self.membership.blocks[np.repeat(entries, np.diff(self.membership.offsets))]] = True
        return blocks


@dataclass(frozen=True)
class BlockIndex:
    """The views of one table; the first has the blocks as its entries."""

    views: tuple[View, ...]

    @property
    def blocks(self) -> Stats:
        return self.views[0].stats

    @cached_property
    def overlap(self) -> tuple[View, CellParts] | None:
        """The view whose entries are parts of cells, if rows are stored in several blocks."""
        return next(((view, view.parts) for view in self.views if view.parts is not None), None)

    @cached_property
    def whole_places(self) -> WholePlaces:
        """For each cell: the places that hold all its rows."""
        return {} if self.overlap is None else self.overlap[1].whole_places(self.overlap[0].stats.rows)

    @cached_property
    def home_blocks(self) -> Bools:
        """For each block: is it a home? Homes together hold every row once; the other blocks are copies."""
        is_home = np.ones(len(self.blocks), bool)
        if self.overlap is not None:
            parts = self.overlap[1]
            is_home[parts.file[parts.place < 0]] = False
        return is_home

    def to_open(self, p: Predicate) -> Bools:
        """For each block: does a query for the rows on which `p` is TRUE have to open it?"""
        return self.choose_files(p).opened

    def may_hold(self, p: Predicate) -> Bools:
        """For each block: may it hold a row on which `p` is TRUE?"""
        found = np.ones(len(self.blocks), bool)
        for view in self.views:
            found &= view.to_open(p, len(found))
        return found

    def choose_files(self, p: Predicate, costs: Ints | None = None, copies: bool = True) -> FileChoice:
        """The blocks to open for `p`. `costs` of blocks default to their rows; `copies`: may copies be read?"""
        may_open = self.may_hold(p)
        if self.overlap is None:
            return FileChoice(may_open)
        if not copies:
            return FileChoice(may_open & self.home_blocks)
        view, parts = self.overlap
        needed = may_match(p, view.stats) & may_open[parts.file]
        return choose_files(needed, parts, self.whole_places, self.blocks.rows if costs is None else costs)


def concat_indexes(first: BlockIndex, more: BlockIndex) -> BlockIndex:
    """One index over the blocks of both; the blocks of `more` come after those of `first`."""
    n = len(first.blocks)
    views = []
    for a, b in zip(first.views, more.views, strict=True):
        parts = a.parts and b.parts and a.parts.followed_by(b.parts, n)
        members = a.membership and b.membership and a.membership.followed_by(b.membership, n)
        views.append(View(concat([a.stats, b.stats]), members, parts))
    return BlockIndex(tuple(views))
