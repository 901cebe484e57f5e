"""The index as Pando published it (5): the trees themselves, without statistics of blocks and without words.

Each tree names the blocks with a row of a leaf that the cuts above the leaf do not exclude. A query reads the blocks
that all trees name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.layouts.base import BlockIds
from hedgerow.core.layouts.tree import TreeLayout, path_stats
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.evaluator import may_match


@dataclass(frozen=True)
class TreeIndex:
    """Blocks of which only the rows are known, and for each tree what its leaves promise and which blocks they name."""

    blocks: Stats
    trees: tuple[tuple[Stats, Bools], ...]  # the promises; (leaves, blocks): True if the block has a row of the leaf

    @property
    def home_blocks(self) -> Bools:
        """True for each block, because none is a copy."""
        return np.ones(len(self.blocks), bool)

    @staticmethod
    def of(trees: Sequence[TreeLayout], leaves: Sequence[BlockIds], blocks: BlockIds) -> TreeIndex:
        """Build the index: row i is in block `blocks[i]`, and in the leaf `leaves[t][i]` of tree t."""
        rows = np.bincount(blocks)
        indexed = []
        for tree, leaf in zip(trees, leaves, strict=True):
            number, paths = zip(*sorted(tree.paths()), strict=True)
            named = np.zeros((len(number), len(rows)), bool)
            named[leaf, blocks] = True
            indexed.append((path_stats(tree.cuts, paths), named))
        return TreeIndex(Stats(rows, {}, {}), tuple(indexed))

    def to_open(self, p: Predicate) -> Bools:
        """True for each block that every tree names for a query for the rows on which `p` is TRUE."""
        opened = self.home_blocks
        for promises, named in self.trees:
            opened &= named[may_match(p, promises)].any(axis=0)
        return opened
