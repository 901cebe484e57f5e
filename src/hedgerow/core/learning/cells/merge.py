"""Join small cells into blocks of at least `least` rows, so that queries read as little as possible.

A cell is a set of rows that stay together: a leaf of a tree, or a group of rows. It has a size and, for each cut, two
facts: the cut is TRUE on some row; it is not TRUE on some row. A block has the union of these facts, so a query that
skips each of two cells may have to read them as one block. The price of joining i and j is the extra rows read, divided
by the shortfall that the join removes. So two halves are joined rather than two blocks that are nearly full:

    size_i (w(i+j) - w(i)) + size_j (w(i+j) - w(j))        w: weight of the queries that read it
    -----------------------------------------------
           lack_i + lack_j - lack_(i+j)                    lack: max(0, least - size)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.learning.cells.kernels import JoinRule, emit, join, move
from hedgerow.core.parallel import parallel_map
from hedgerow.core.workload.query_clauses import Clauses

MAX_JOINED_AT_ONCE = 150  # cells in one call of `join`: its time and memory grow with the square
NEW_BLOCK_TRIES = 1  # the number of cells tried as the first of a new block, per existing block
FLOAT32_ROUNDING = 1e-5  # relative: at least the error of a float32 sum, so that a bound stays a bound


@dataclass(frozen=True)
class Cells:
    """Cells with their number of rows; `some` and `other` are cells x cuts: TRUE, and not TRUE, on some row."""

    rows: Ints
    some: Bools
    other: Bools

    def __len__(self) -> int:
        return len(self.rows)

    def skipped(self, block: Ints, clauses: Clauses) -> float:
        """Return rows x weight that the queries skip, if cell i is in block `block[i]`."""
        some_of_block, other_of_block = np.zeros((2, int(block.max()) + 1, self.some.shape[1]), bool)
        np.logical_or.at(some_of_block, block, self.some)
        np.logical_or.at(other_of_block, block, self.other)
        return float(clauses.skipped(some_of_block, other_of_block) @ np.bincount(block, self.rows))


def merge(cells: Cells, clauses: Clauses, least: int, rounds: int = 3) -> Ints:
    """Return the block of each cell; blocks are numbered in the order of their first cells."""
    with_rows = np.flatnonzero(cells.rows)
    if not len(with_rows):
        return np.zeros(len(cells), np.int64)
    state = _CellState.of(cells, clauses)
    groups = np.array_split(with_rows, -(-len(with_rows) // MAX_JOINED_AT_ONCE))  # keeps neighbours in a tree together
    rule = JoinRule(float(least), True)
    blocks = _concatenated(parallel_map(lambda group: state.joined(group, rule), groups))
    for _ in range(rounds):
        before = len(blocks)
        blocks, moved = state.moved(blocks, least)
        split = _concatenated(parallel_map(lambda members: state.split(members, least), blocks))
        blocks = state.emitted(split, least)
        if not moved and len(blocks) == before:
            break
    return _numbered(blocks, len(cells))


def merge_cheapest(cells: Cells, clauses: Clauses, least: int) -> Ints:
    """Return the block of each cell, as in Pando (6.2): the cheapest of all pairs is joined, and nothing moves later.

    The price is the number of extra rows that queries read, whatever the sizes of the two. Time and memory grow with
    the square of the cells.
    """
    with_rows = np.flatnonzero(cells.rows)
    rule = JoinRule(float(least), False)
    return _numbered(_CellState.of(cells, clauses).joined(with_rows, rule) if len(with_rows) else [], len(cells))


def _numbered(blocks: list[Ints], cells: int) -> Ints:
    """Return the block of each cell; cells without rows are in block 0, and change nothing there."""
    block_of_cell = np.zeros(cells, np.int64)
    for block, members in enumerate(sorted(blocks, key=min)):
        block_of_cell[members] = block
    return block_of_cell


class _BlockArrays(NamedTuple):
    """Blocks as arrays for the compiled loops, with an entry for each block."""

    rows: Floats
    holds: Bools  # blocks x clauses: the clause may hold
    may: Bools  # blocks x queries: the query reads the block
    weight: Floats  # the weight of the queries that read the block


@dataclass(frozen=True)
class _CellState:
    """The cells, with the clauses that may hold on them and the queries that read them.

    A clause may hold on a block if it may hold on one of its cells.
    """

    clauses: Clauses
    cells: _BlockArrays

    @staticmethod
    def of(cells: Cells, clauses: Clauses) -> _CellState:
        may = clauses.may(cells.some, cells.other)
        weight = may.astype(np.float64) @ clauses.weights
        holds = np.ascontiguousarray(clauses.hold(cells.some, cells.other))
        arrays = _BlockArrays(cells.rows.astype(np.float64), holds, np.ascontiguousarray(may), weight)
        return _CellState(clauses, arrays)

    def _chosen(self, members: Ints) -> _BlockArrays:
        """Return a copy of the arrays of these cells, as blocks of one cell each."""
        cells = self.cells
        return _BlockArrays(cells.rows[members], cells.holds[members], cells.may[members], cells.weight[members])

    def joined(self, members: Ints, rule: JoinRule) -> list[Ints]:
        """Join these cells into blocks of at least `rule.least` rows, or into a single block if they have fewer."""
        may, weight = self.cells.may[members], self.cells.weight[members].astype(np.float32)
        # A block of two cells is read at least by the queries of each.
        bounds = (may * -self.clauses.weights) @ may.T.astype(np.float32)
        bounds += weight[:, None]
        bounds += weight
        bounds *= 1 - FLOAT32_ROUNDING
        into = join(self._chosen(members), bounds, self.clauses.arrays, rule)
        return [members[into == block] for block in np.unique(into).tolist()]

    def moved(self, blocks: list[Ints], least: int) -> tuple[list[Ints], int]:
        """Move single cells to the blocks where they cost least; return the blocks and the number of cells moved."""
        members, of = _flat(blocks)
        moved = move(self._chosen(members), of, self._empty(len(blocks)), self.clauses.arrays, float(least))
        return [members[of == block] for block in range(len(blocks))], moved

    def emitted(self, blocks: list[Ints], least: int) -> list[Ints]:
        """Add new blocks of cells that other blocks can spare."""
        members, of = _flat(blocks)
        spare = self._empty(max(len(blocks), int(self.cells.rows[members].sum() // max(1, least))) + 1)
        tries = NEW_BLOCK_TRIES * len(blocks)
        n = emit(self._chosen(members), of, spare, self.clauses.arrays, float(least), tries)
        return [members[of == block] for block in range(n)]

    def _empty(self, blocks: int) -> _BlockArrays:
        holds, may = (np.zeros((blocks, array.shape[1]), bool) for array in (self.cells.holds, self.cells.may))
        return _BlockArrays(np.zeros(blocks), holds, may, np.zeros(blocks))

    def split(self, members: Ints, least: int) -> list[Ints]:
        """Join the cells of a block of at least twice `least` rows again: queries never read more in two blocks."""
        large = len(members) > 1 and self.cells.rows[members].sum() >= 2 * least
        return self.joined(members, JoinRule(float(least), True)) if large else [members]


def _concatenated(lists: Iterable[list[Ints]]) -> list[Ints]:
    return [members for blocks in lists for members in blocks]


def _flat(blocks: list[Ints]) -> tuple[Ints, Ints]:
    """Return all cells, and the block of each."""
    return np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(members) for members in blocks])
