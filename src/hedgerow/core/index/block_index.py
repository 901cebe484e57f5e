"""The block index: views of one written table, each saying which blocks a predicate may need.

A view's entries cover all rows; an entry lives in one or more blocks. The blocks themselves are the first view;
finer cells or Pando's logical trees are others. A block must be opened only if every view says so.

Where rows are kept in several blocks (an overlap), one view has the parts of cells as its entries, and says of each
which cell it is a part of and where it lies: then not all blocks are opened that hold a row needed, but enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.index.file_choice import Cover, Homes, Parts, cover
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import Bools, Ints, Stats, concat
from hedgerow.core.pruning.evaluator import may_match


@dataclass(frozen=True)
class Membership:
    """Entry i lives in `blocks[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    blocks: Ints

    @staticmethod
    def build(blocks_of: Sequence[Sequence[int]]) -> Membership:
        offsets = np.cumsum([0, *map(len, blocks_of)], dtype=np.int64)
        return Membership(offsets, np.array([b for of in blocks_of for b in of], np.int64))

    def followed_by(self, more: Membership, n: int) -> Membership:
        """The entries of both; the blocks of `more` are numbered after `n` others."""
        offsets = np.concatenate([self.offsets, more.offsets[1:] + self.offsets[-1]])
        return Membership(offsets, np.concatenate([self.blocks, more.blocks + n]))


@dataclass(frozen=True)
class View:
    """Statistics of entries and where they live; without a membership, entry i is block i."""

    stats: Stats
    membership: Membership | None = None
    parts: Parts | None = None

    def blocks(self, p: Predicate, n: int) -> Bools:
        entries = may_match(p, self.stats)
        if self.parts is not None:
            found = np.zeros(n, bool)
            found[self.parts.file[entries]] = True
            return found
        if self.membership is None:
            return entries
        found = np.zeros(n, bool)
        found[self.membership.blocks[np.repeat(entries, np.diff(self.membership.offsets))]] = True
        return found


@dataclass(frozen=True)
class BlockIndex:
    """The views of one table; the first has the blocks as its entries."""

    views: tuple[View, ...]

    @property
    def blocks(self) -> Stats:
        return self.views[0].stats

    @cached_property
    def overlap(self) -> tuple[View, Parts] | None:
        """The view of parts of cells, if rows are kept in several blocks."""
        return next(((view, view.parts) for view in self.views if view.parts is not None), None)

    @cached_property
    def homes(self) -> Homes:
        """Where each cell may be read."""
        return {} if self.overlap is None else self.overlap[1].homes(self.overlap[0].stats.rows)

    @cached_property
    def own(self) -> Bools:
        """The blocks that together hold each row once; the others are copies."""
        found = np.ones(len(self.blocks), bool)
        if self.overlap is not None:
            parts = self.overlap[1]
            found[parts.file[parts.place < 0]] = False
        return found

    def to_open(self, p: Predicate) -> Bools:
        """Blocks that may hold a row on which `p` is TRUE, by the word of every view; of copies only what is needed."""
        return self.cover(p).opened

    def cover(self, p: Predicate, costs: Ints | None = None, copies: bool = True) -> Cover:
        """What to open; `costs`: of blocks, their rows by default; `copies`: whether these may be read."""
        found = np.ones(len(self.blocks), bool)
        for view in self.views:
            found &= view.blocks(p, len(found))
        if self.overlap is None:
            return Cover(found)
        if not copies:
            return Cover(found & self.own)
        view, parts = self.overlap
        needed = may_match(p, view.stats) & found[parts.file]
        return cover(needed, parts, self.homes, self.blocks.rows if costs is None else costs)


def joined(first: BlockIndex, more: BlockIndex) -> BlockIndex:
    """The index over the blocks of both, those of `more` numbered after the others."""
    n = len(first.blocks)
    views = []
    for a, b in zip(first.views, more.views, strict=True):
        parts = a.parts and b.parts and a.parts.followed_by(b.parts, n)
        members = a.membership and b.membership and a.membership.followed_by(b.membership, n)
        views.append(View(concat([a.stats, b.stats]), members, parts))
    return BlockIndex(tuple(views))
