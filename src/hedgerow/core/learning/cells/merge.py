"""Join small cells into blocks of at least `least` rows so that queries read as little as they can.

A cell is some rows that stay together: a leaf of a tree, a group of rows, a tuple of logical trees. Of each one knows
its size and which cuts are sometimes TRUE and sometimes not on its rows. A joined block knows that for all its cells
together, so queries that could skip each of them may have to read it. Joining i and j costs what is read in vain, for
each row that the two no longer lack to be a block (so that halves are joined rather than two that are nearly full):

    size_i (w(i+j) - w(i)) + size_j (w(i+j) - w(j))        w: weight of the queries that cannot skip
    -----------------------------------------------
           lack_i + lack_j - lack_(i+j)                    lack: max(0, least - size)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.core.learning.cells.kernels import emit, join, move
from hedgerow.core.parallel import parallel_map
from hedgerow.core.pruning.block_stats import Bools, Ints
from hedgerow.core.workload.query_clauses import Clauses

AT_ONCE = 5000  # cells that are joined together: time and memory grow with the square; as many at once as cores
TRIES = 1  # cells for each block with which a new one is begun


@dataclass(frozen=True)
class Cells:
    """`some` and `other` are cells x cuts: the cut is TRUE, is not TRUE on some row of the cell."""

    rows: Ints
    some: Bools
    other: Bools

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, chosen: Any) -> Cells:
        return Cells(self.rows[chosen], self.some[chosen], self.other[chosen])

    def and_also(self, more: Cells) -> Cells:
        both = zip((self.rows, self.some, self.other), (more.rows, more.some, more.other), strict=True)
        return Cells(*(np.concatenate(own) for own in both))

    def skipped(self, block: Ints, clauses: Clauses) -> float:
        """Joined to these blocks: rows x the weight of the queries that skip them."""
        known = np.zeros((2, int(block.max()) + 1, self.some.shape[1]), bool)
        for found, own in zip(known, (self.some, self.other), strict=True):
            np.logical_or.at(found, block, own)
        return float(clauses.skipped(*known) @ np.bincount(block, self.rows))


def merge(cells: Cells, clauses: Clauses, least: int, rounds: int = 3) -> Ints:
    """The block of each cell, numbered in the order of their first cells."""
    full = np.flatnonzero(cells.rows)
    if not len(full):
        return np.zeros(len(cells), np.int64)
    known = _Known.of(cells, clauses)
    groups = np.array_split(full, -(-len(full) // AT_ONCE))  # neighbours in a tree are neighbours here
    blocks = _all(parallel_map(lambda group: known.joined(group, least), groups))
    for _ in range(rounds):
        before = len(blocks)
        blocks, moved = known.moved(blocks, least)
        blocks = known.emitted(_all(parallel_map(lambda own: known.split(own, least), blocks)), least)
        if not moved and len(blocks) == before:
            break
    found = np.zeros(len(cells), np.int64)  # cells without rows go to block 0: nothing is known of them, nothing lost
    for block, own in enumerate(sorted(blocks, key=min)):
        found[own] = block
    return found


@dataclass(frozen=True)
class _Known:
    """What cells tell of clauses and queries. A clause holds on a block if it does on one of its cells."""

    clauses: Clauses
    rows: npt.NDArray[np.float64]
    holds: Bools  # cells x clauses
    may: Bools  # cells x queries that cannot skip the cell
    weight: npt.NDArray[np.float64]  # of these

    @staticmethod
    def of(cells: Cells, clauses: Clauses) -> _Known:
        may = clauses.may(cells.some, cells.other)
        weight = may.astype(np.float64) @ clauses.weights
        holds = np.ascontiguousarray(clauses.hold(cells.some, cells.other))
        return _Known(clauses, cells.rows.astype(np.float64), holds, np.ascontiguousarray(may), weight)

    def _of(self, own: Ints) -> tuple[npt.NDArray[np.float64], Bools, Bools, npt.NDArray[np.float64]]:
        return self.rows[own], self.holds[own], self.may[own], self.weight[own]

    def joined(self, own: Ints, least: int) -> list[Ints]:
        """Blocks of at least so many rows; a single one has what there is."""
        may, weight = self.may[own], self.weight[own].astype(np.float32)
        # Joined, a block is read by the queries of both at least; a little less, for float32 rounds.
        bounds = (may * -self.clauses.weights) @ may.T.astype(np.float32)
        bounds += weight[:, None]
        bounds += weight
        bounds *= 1 - 1e-5
        into = join(self._of(own), bounds, self.clauses.lists, float(least))
        return [own[into == block] for block in np.unique(into).tolist()]

    def moved(self, blocks: list[Ints], least: int) -> tuple[list[Ints], int]:
        """Single cells in the blocks where they cost least, and how many have changed theirs."""
        own, of = _flat(blocks)
        moved = move(self._of(own), of, self._room(len(blocks)), self.clauses.lists, float(least))
        return [own[of == block] for block in range(len(blocks))], moved

    def emitted(self, blocks: list[Ints], least: int) -> list[Ints]:
        """With new blocks made of cells that others can spare."""
        own, of = _flat(blocks)
        room = self._room(max(len(blocks), int(self.rows[own].sum() // max(1, least))) + 1)
        n = emit(self._of(own), of, room, self.clauses.lists, float(least), TRIES * len(blocks))
        return [own[of == block] for block in range(n)]

    def _room(self, blocks: int) -> tuple[npt.NDArray[np.float64], Bools, Bools, npt.NDArray[np.float64]]:
        clauses, queries = self.holds.shape[1], self.may.shape[1]
        return np.zeros(blocks), np.zeros((blocks, clauses), bool), np.zeros((blocks, queries), bool), np.zeros(blocks)

    def split(self, own: Ints, least: int) -> list[Ints]:
        """A block of twice the size or more, joined again from its cells alone: two never read more than one."""
        return self.joined(own, least) if len(own) > 1 and self.rows[own].sum() >= 2 * least else [own]


def _all(found: Iterable[list[Ints]]) -> list[Ints]:
    return [own for some in found for own in some]


def _flat(blocks: list[Ints]) -> tuple[Ints, Ints]:
    """All cells, and the block of each."""
    return np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(own) for own in blocks])
