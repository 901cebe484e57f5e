"""The block index of a written table: it decides which blocks to open for a predicate.

It has statistics of each block. In an overlap, some cells are stored in several blocks. Then it also has statistics of
each cell in each of its blocks, so that a query opens only the blocks that it needs to read every matching row once.

A block here is a file. Where a file has several blocks of the layout, it also has statistics of each row group.
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
from hedgerow.core.pruning.combine_stats import concat, repeat
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
class GroupIndex:
    """Statistics of row groups: row group i is in block `block[i]`, and begins at byte `start[i]` of its file.

    They are in the order of blocks, and in a block in the order of the file. A block has all its row groups, or none.
    """

    stats: Stats
    block: Ints
    start: Ints


@dataclass(frozen=True)
class BlockIndex:
    """Statistics of the blocks of a table; of the parts of cells where rows are stored in several blocks; of row groups
    where a block has several."""

    blocks: Stats
    cells: CellIndex | None = None
    groups: GroupIndex | None = None

    def map_stats(self, change: Callable[[Stats], Stats]) -> BlockIndex:
        """Return the index with changed statistics of the same blocks, parts and row groups."""
        return BlockIndex(
            change(self.blocks),
            self.cells and replace(self.cells, stats=change(self.cells.stats)),
            self.groups and replace(self.groups, stats=change(self.groups.stats)),
        )

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
        if self.groups is not None:
            by_groups = np.ones(len(matching), bool)
            by_groups[self.groups.block] = False
            by_groups[self.groups.block[may_match(p, self.groups.stats)]] = True
            matching = matching & by_groups
        if self.cells is None:
            return matching
        by_cells = np.zeros(len(matching), bool)
        by_cells[self.cells.parts.file[may_match(p, self.cells.stats)]] = True
        return matching & by_cells

    def take(self, places: Ints) -> BlockIndex:
        """Return the index of the blocks at these ascending places, without cells."""
        groups = self.groups
        if groups is not None:
            at = np.flatnonzero(np.isin(groups.block, places))
            stats = repeat(groups.stats, at)
            groups = GroupIndex(stats, np.searchsorted(places, groups.block[at]), groups.start[at])
        return BlockIndex(repeat(self.blocks, places), groups=groups)

    def groups_to_read(self, p: Predicate, opened: Bools) -> Bools:
        """True for each row group of the opened blocks that may hold a row on which `p` is TRUE."""
        if self.groups is None:
            return np.zeros(0, bool)
        return may_match(p, self.groups.stats) & opened[self.groups.block]

    def rows_to_read(self, p: Predicate, opened: Bools) -> Ints:
        """Return the rows of each block that a scan of the opened blocks reads."""
        rows = np.where(opened, self.blocks.rows, 0)
        if self.groups is not None:
            groups = self.groups
            rows[groups.block] = 0
            read = self.groups_to_read(p, opened)
            np.add.at(rows, groups.block[read], groups.stats.rows[read])
        return rows

    def filters_skip(self, p: Predicate, opened: Bools) -> bool:
        """True if some block besides the opened ones would be opened without the filters of look-ups."""
        if self.filtered.isdisjoint(map(term_text, terms_of(p))):
            return False
        return bool((self.without_filters.choose_files(p, copies=False).opened > opened).any())

    @property
    def groups_of_all(self) -> GroupIndex | None:
        """The row groups, if they are known of every block."""
        groups = self.groups
        return groups if groups is not None and len(np.unique(groups.block)) == len(self.blocks) else None

    @property
    def finest(self) -> Stats:
        """The statistics of row groups, if they are known of every block; else those of blocks."""
        groups = self.groups_of_all
        return self.blocks if groups is None else groups.stats

    @property
    def filtered(self) -> frozenset[str]:
        """The columns with filters of look-ups, of files or of row groups."""
        of_groups = () if self.groups is None else self.groups.stats.filters
        return frozenset((*self.blocks.filters, *of_groups))

    @cached_property
    def without_filters(self) -> BlockIndex:
        """The index as if there were no filters of look-ups."""
        return self.map_stats(lambda stats: replace(stats, filters={}))

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
    sizes = [len(index.blocks) for index in indexes]
    blocks, groups = concat([index.blocks for index in indexes]), _concat_groups([i.groups for i in indexes], sizes)
    cells = [index.cells for index in indexes if index.cells is not None]
    if not cells:
        return BlockIndex(blocks, groups=groups)
    parts = CellParts.concat([c.parts for c in cells], sizes)
    return BlockIndex(blocks, CellIndex(concat([c.stats for c in cells]), parts), groups)


def _concat_groups(groups: Sequence[GroupIndex | None], blocks: Sequence[int]) -> GroupIndex | None:
    """Return the row groups of several indexes, one after the other; `blocks`: how many blocks each has."""
    first_blocks = np.cumsum([0, *blocks[:-1]])
    known = [(part, first) for part, first in zip(groups, first_blocks, strict=True) if part is not None]
    if not known:
        return None
    return GroupIndex(
        concat([part.stats for part, _ in known]),
        np.concatenate([part.block + first for part, first in known]),
        np.concatenate([part.start for part, _ in known]),
    )
