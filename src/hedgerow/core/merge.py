"""Join small cells into blocks of at least `least` rows so that queries read as little as they can.

A cell is some rows that stay together: a leaf of a tree, a group of rows, a tuple of logical trees. Of each one knows
its size and which cuts are sometimes TRUE and sometimes not on its rows. A joined block knows that for all its cells
together, so queries that could skip each of them may have to read it. Joining i and j costs what is read in vain:

    size_i (w(i+j) - w(i)) + size_j (w(i+j) - w(j))        w: weight of the queries that cannot skip
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hedgerow.core.clauses import Clauses, Matrix
from hedgerow.core.stats import Bools, Ints

_AT_ONCE = 16  # partners whose exact cost is found together


@dataclass(frozen=True)
class Cells:
    """`some` and `other` are cells x cuts: the cut is TRUE, is not TRUE on some row of the cell."""

    rows: Ints
    some: Bools
    other: Bools

    def __len__(self) -> int:
        return len(self.rows)


def merge(cells: Cells, clauses: Clauses, least: int, rounds: int = 3) -> Ints:
    """The block of each cell, numbered in the order of their first cells."""
    blocks = _Blocks.of(cells, clauses)
    blocks.join(least)
    for _ in range(rounds):
        if not blocks.move(cells, least):
            break
    return blocks.numbered(len(cells))


@dataclass
class _Blocks:
    """Blocks in the making: row i of every array is block i, dead ones have no cells."""

    clauses: Clauses
    rows: npt.NDArray[np.float64]
    some: Bools
    other: Bools
    may: Matrix  # blocks x queries
    weight: Matrix  # of the queries that cannot skip the block
    cells: list[list[int]]
    best: dict[int, tuple[float, int]] = field(default_factory=dict)

    @staticmethod
    def of(cells: Cells, clauses: Clauses) -> _Blocks:
        may = clauses.may(cells.some, cells.other).astype(np.float32)
        return _Blocks(
            clauses,
            cells.rows.astype(np.float64),
            cells.some.copy(),
            cells.other.copy(),
            may,
            may @ clauses.weights,
            [[i] for i in range(len(cells))],
        )

    def join(self, least: int) -> None:
        """The cheapest join of a block that is too small, again and again until none is."""
        alive = self.rows > 0
        small = {i for i in np.flatnonzero(alive & (self.rows < least)).tolist()}
        while small and alive.sum() > 1:
            for i in small:
                if i not in self.best or not alive[self.best[i][1]]:
                    self.best[i] = self._partner(i, alive)
            i = min(small, key=lambda k: (self.best[k][0], k))
            j = self.best[i][1]
            self._absorb(i, j)
            alive[j] = False
            small.discard(j)
            self.best = {k: v for k, v in self.best.items() if v[1] not in (i, j) and k not in (i, j)}
            if self.rows[i] >= least:
                small.discard(i)
            else:
                small.add(i)
            self._offer(i, small)

    def _partner(self, i: int, alive: Bools) -> tuple[float, int]:
        """The cheapest partner, and its cost. Partners come by a lower bound of it: joined, a block is read by the
        queries of both at least, so most are never looked at."""
        others = np.flatnonzero(alive)
        others = others[others != i]
        bounds = self._at_least(i, others)
        order = np.argsort(bounds, kind="stable")
        cost, at = np.inf, -1
        for start in range(0, len(order), _AT_ONCE):
            part = order[start : start + _AT_ONCE]
            if bounds[part[0]] >= cost:
                break
            exact = self._cost(i, others[part])
            best = int(np.argmin(exact))
            if exact[best] < cost:
                cost, at = float(exact[best]), int(others[part[best]])
        return cost, at

    def _at_least(self, i: int, others: npt.NDArray[np.intp]) -> Matrix:
        both = self.may[others] @ (self.may[i] * self.clauses.weights)
        joined = self.weight[i] + self.weight[others] - both
        return self._wasted(i, others, joined)

    def _cost(self, i: int, others: npt.NDArray[np.intp]) -> Matrix:
        may = self.clauses.may(self.some[others] | self.some[i], self.other[others] | self.other[i])
        return self._wasted(i, others, may.astype(np.float32) @ self.clauses.weights)

    def _wasted(self, i: int, others: npt.NDArray[np.intp], joined: Matrix) -> Matrix:
        found: Matrix = self.rows[i] * (joined - self.weight[i]) + self.rows[others] * (joined - self.weight[others])
        return found

    def _absorb(self, i: int, j: int) -> None:
        self.rows[i] += self.rows[j]
        self.rows[j] = 0
        self.some[i] |= self.some[j]
        self.other[i] |= self.other[j]
        self.cells[i] += self.cells[j]
        self.cells[j] = []
        self._look(i)

    def _look(self, i: int) -> None:
        self.may[i] = self.clauses.may(self.some[i : i + 1], self.other[i : i + 1])[0]
        self.weight[i] = self.may[i] @ self.clauses.weights

    def _offer(self, i: int, small: set[int]) -> None:
        """A block has changed: for those that know their partner it may now be the better one."""
        known = np.array(sorted(k for k in small if k in self.best and k != i), np.intp)
        if not len(known):
            return
        bounds = self._at_least(i, known)
        promising = known[bounds < np.array([self.best[k][0] for k in known.tolist()])]
        for start in range(0, len(promising), 64):
            part = promising[start : start + 64]
            for k, cost in zip(part.tolist(), self._cost(i, part).tolist(), strict=True):
                if cost < self.best[k][0]:
                    self.best[k] = (cost, i)

    def move(self, cells: Cells, least: int) -> int:
        """Let single cells go to cheaper blocks, as long as no block falls below `least`; how many went."""
        moved = 0
        for i in range(len(self.cells)):
            for cell in list(self.cells[i]):
                if len(self.cells[i]) > 1 and self.rows[i] - cells.rows[cell] >= least:
                    moved += self._move(cells, i, cell)
        return moved

    def _move(self, cells: Cells, i: int, cell: int) -> bool:
        rest = [c for c in self.cells[i] if c != cell]
        some, other = np.logical_or.reduce(cells.some[rest]), np.logical_or.reduce(cells.other[rest])
        lighter = float(self.clauses.weights @ self.clauses.may(some[None], other[None])[0])
        size = float(cells.rows[cell])
        now = float(self.rows[i] * self.weight[i])
        gain = now - float(self.rows[i] - size) * lighter  # what the block no longer reads
        others = np.flatnonzero(self.rows > 0)
        others = others[others != i]
        if not len(others):
            return False
        own = self.clauses.may(cells.some[cell][None], cells.other[cell][None])[0].astype(np.float32)
        weight = float(own @ self.clauses.weights)
        joined = weight + self.weight[others] - self.may[others] @ (own * self.clauses.weights)
        bounds = self.rows[others] * (joined - self.weight[others]) + size * joined
        order = np.argsort(bounds, kind="stable")[:_AT_ONCE]
        if bounds[order[0]] >= gain:
            return False
        near = others[order]
        may = self.clauses.may(self.some[near] | cells.some[cell], self.other[near] | cells.other[cell])
        joined = may.astype(np.float32) @ self.clauses.weights
        costs = self.rows[near] * (joined - self.weight[near]) + size * joined
        best = int(np.argmin(costs))
        if costs[best] >= gain * (1 - 1e-6):
            return False
        j = int(near[best])
        self.cells[i], self.some[i], self.other[i] = rest, some, other
        self.rows[i] -= size
        self.cells[j].append(cell)
        self.rows[j] += size
        self.some[j] |= cells.some[cell]
        self.other[j] |= cells.other[cell]
        self._look(i)
        self._look(j)
        return True

    def numbered(self, n: int) -> Ints:
        """Cells without rows go to block 0: nothing is known of them, nothing is lost."""
        found = np.full(n, -1, np.int64)
        for i, own in enumerate(self.cells):
            if self.rows[i] > 0:
                found[own] = i
        place = {block: k for k, block in enumerate(dict.fromkeys(b for b in found.tolist() if b >= 0))}
        return np.array([place.get(b, 0) for b in found.tolist()], np.int64)
