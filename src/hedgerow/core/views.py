"""The block index: views of one written table, each saying which blocks a predicate may need.

A view's entries cover all rows; an entry lives in one or more blocks. The blocks themselves are the first view;
finer cells or Pando's logical trees are others. A block must be opened only if every view says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.expr import Predicate
from hedgerow.core.outcomes import may_match
from hedgerow.core.stats import Bools, Ints, Stats


@dataclass(frozen=True)
class Membership:
    """Entry i lives in `blocks[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    blocks: Ints

    @staticmethod
    def build(blocks_of: Sequence[Sequence[int]]) -> Membership:
        offsets = np.cumsum([0, *map(len, blocks_of)], dtype=np.int64)
        return Membership(offsets, np.array([b for of in blocks_of for b in of], np.int64))


@dataclass(frozen=True)
class View:
    """Statistics of entries and where they live; without a membership, entry i is block i."""

    stats: Stats
    membership: Membership | None = None

    def blocks(self, p: Predicate, n: int) -> Bools:
        entries = may_match(p, self.stats)
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

    def to_open(self, p: Predicate) -> Bools:
        """Blocks that may hold a row on which `p` is TRUE, by the word of every view."""
        found = np.ones(len(self.blocks), bool)
        for view in self.views:
            found &= view.blocks(p, len(found))
        return found
