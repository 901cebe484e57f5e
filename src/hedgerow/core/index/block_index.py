"""The block index of a written table: it decides which blocks to open for a predicate.

It has statistics of each block. In an overlap, some cells are stored in several blocks. Then it also has statistics of
each cell in each of its blocks, so that a query opens only the blocks that it needs to read every matching row once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.file_choice import CellParts, FileChoice, WholePlaces, choose_files
from hedgerow.core.predicates.nodes import Predicate, terms_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.combine_stats import concat
from hedgerow.core.pruning.evaluator import may_match


@dataclass(frozen=True)
class CellIndex:
    """Statistics of the parts of cells: entry i describes part i."""

    stats: Stats
    parts: CellParts

    @cached_property
    def whole_places(self) -> WholePlaces:
        """The places that hold all rows of a cell, by cell."""
        return self.parts.whole_places(self.stats.rows)


@dataclass(frozen=True)
class BlockIndex:
    """Statistics of the blocks of a table, and of the parts of cells where rows are stored in several blocks."""

    blocks: Stats
    cells: CellIndex | None = None

    def map_stats(self, change: Callable[[Stats], Stats]) -> BlockIndex:
        """Return the index with changed statistics of the same blocks and parts."""
        return BlockIndex(change(self.blocks), self.cells and CellIndex(change(self.cells.stats), self.cells.parts))

    @cached_property
    def home_blocks(self) -> Bools:
        """True for each block that is a home. Homes together hold every row once; the other blocks are copies."""
        is_home = np.ones(len(self.blocks), bool)
        if self.cells is not None:
            parts = self.cells.parts
            is_home[parts.file[parts.place < 0]] = False
        return is_home

    def to_open(self, p: Predicate) -> Bools:
        """True for each block that a query for the rows on which `p` is TRUE has to open."""
        return self.choose_files(p).opened

    def may_hold(self, p: Predicate) -> Bools:
        """True for each block that may hold a row on which `p` is TRUE."""
        matching = may_match(p, self.blocks)
        if self.cells is None:
            return matching
        by_cells = np.zeros(len(matching), bool)
        by_cells[self.cells.parts.file[may_match(p, self.cells.stats)]] = True
        return matching & by_cells

    def filters_skip(self, p: Predicate, opened: Bools) -> bool:
        """True if some block besides the opened ones would be opened without the filters of look-ups."""
        if self.blocks.filters.keys().isdisjoint(map(term_text, terms_of(p))):
            return False
        return bool((self._without_filters.choose_files(p, copies=False).opened > opened).any())

    @cached_property
    def _without_filters(self) -> BlockIndex:
        return BlockIndex(replace(self.blocks, filters={}), self.cells)

    def choose_files(self, p: Predicate, costs: Ints | None = None, copies: bool = True) -> FileChoice:
        """Return the blocks to open for `p`.

        The costs of blocks are by default their rows; without `copies` only homes are opened.
        """
        may_open = self.may_hold(p)
        if self.cells is None:
            return FileChoice(may_open)
        if not copies:
            return FileChoice(may_open & self.home_blocks)
        parts = self.cells.parts
        needed = may_match(p, self.cells.stats) & may_open[parts.file]
        return choose_files(needed, parts, self.cells.whole_places, self.blocks.rows if costs is None else costs)


def concat_indexes(indexes: Sequence[BlockIndex]) -> BlockIndex:
    """Return one index over the blocks of all, one after the other; all of them have cells, or none has."""
    if len(indexes) == 1:
        return indexes[0]
    blocks = concat([index.blocks for index in indexes])
    cells = [index.cells for index in indexes if index.cells is not None]
    if not cells:
        return BlockIndex(blocks)
    parts = CellParts.concat([c.parts for c in cells], [len(index.blocks) for index in indexes])
    return BlockIndex(blocks, CellIndex(concat([c.stats for c in cells]), parts))
