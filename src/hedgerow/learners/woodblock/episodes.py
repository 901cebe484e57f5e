"""Grow many trees of cuts together, wave by wave: a policy chooses the cuts of all nodes of a wave at once (5.2).

A wave has the nodes of one depth of all trees. A node is a range of its tree's row numbers, and a cut divides it in
place. Rows are counted for all cuts at once, on the smaller side only; the other side is the difference:

    ids of tree 0  | 7 2 9 4 | 1 8 | 3 0 6 5 |      counts of a node: the number of its rows on which each cut is TRUE
                     node 0   node 1  node 2        no rows or all rows decide which queries skip a leaf
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import open_queries, skipped
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.workload.query_clauses import ClauseArrays
from hedgerow.learners.woodblock.region_bits import Pieces

Counts = npt.NDArray[np.int32]
LEAST_READ, LOG_SCALE = 1e-5, 5.0  # a smaller share of the rows read counts like this one; divides the logarithm


class Wave(NamedTuple):
    """Nodes of one depth: tree, the decision that made the node (`parent`, -1: a root) and its side, and the rows.

    `open` are the queries that might skip a part of the node; `skips` is the weight of the queries that skip all of it.
    """

    tree: Ints
    parent: Ints
    left: Bools
    start: Ints
    end: Ints
    counts: Counts
    region: Bools
    open: Bools
    skips: Floats

    def of(self, chosen: Any) -> Wave:
        return Wave(*(field[chosen] for field in self))

    @property
    def rows(self) -> Ints:
        return self.end - self.start


class State(NamedTuple):
    """The network's input for some nodes: features, and the legal cuts."""

    features: Bools
    legal: Bools

    def of(self, chosen: Any) -> State:
        return State(*(field[chosen] for field in self))


class Choices(NamedTuple):
    """A policy's choices: for each node a legal cut, its log probability, and the expected reward."""

    cut: Ints
    likely: Floats
    worth: Floats

    def of(self, chosen: Any) -> Choices:
        return Choices(*(field[chosen] for field in self))


Policy = Callable[[State], Choices]


@dataclass(frozen=True)
class Episodes:
    """All decisions of some trees, parents first: the decision and the side that made the node, and the node's rows.

    `reward` is the rows x weight that queries skip in the leaves below a decision, as a share of the possible maximum.
    """

    tree: Ints
    parent: Ints
    left: Bools
    rows: Ints
    state: State
    choices: Choices
    reward: Floats
    total: Floats  # the rows x weight that queries skip, for each tree

    def with_log_reward(self) -> Episodes:
        """Return the decisions with a reward that grows alike each time that half as many rows are read."""
        return replace(self, reward=-np.log(np.maximum(1 - self.reward, LEAST_READ)) / LOG_SCALE)

    def nodes(self, tree: int) -> list[list[int]]:
        """Return a tree as nodes (cut, left, right), parents first; ~i stands for leaf i."""
        decisions = np.flatnonzero(self.tree == tree)
        sides = zip(self.parent[decisions].tolist(), self.left[decisions].tolist(), strict=True)
        made_by = dict(zip(sides, decisions.tolist(), strict=True))
        nodes: list[list[int]] = []
        leaves = 0
        todo = [(-1, True, -1)]
        while todo:
            parent, is_left, above = todo.pop()
            decision = made_by.get((parent, is_left), -1)
            if decision < 0:
                child, leaves = ~leaves, leaves + 1
            else:
                child = len(nodes)
                nodes.append([int(self.choices.cut[decision]), 0, 0])
                todo += [(decision, False, child), (decision, True, child)]
            if above >= 0:
                nodes[above][1 if is_left else 2] = child
        return nodes


@dataclass(frozen=True)
class Forest:
    """A problem prepared for growing trees whose leaves have at least `least` sample rows."""

    least: int
    rows: int
    weight: float  # the weight of all queries
    by_cut: npt.NDArray[np.uint64]
    by_row: npt.NDArray[np.uint8]
    counts: Counts
    pieces: Pieces
    clauses: ClauseArrays

    @staticmethod
    def of(problem: Problem, least: int) -> Forest:
        truth = problem.truth
        return Forest(
            least,
            truth.rows,
            float(sum(problem.weights)) or 1.0,
            truth.words,
            np.ascontiguousarray(np.packbits(truth[:], axis=0, bitorder="little").T),
            truth.counts.astype(np.int32),
            Pieces.of(problem.cuts),
            problem.clauses.arrays,
        )

    def grown(self, policy: Policy, trees: int) -> Episodes:
        """Grow trees until no node has a legal cut."""
        ids = np.tile(np.arange(self.rows, dtype=np.int32), (trees, 1))
        wave = self._roots(trees)
        steps: list[tuple[npt.NDArray[Any], ...]] = []  # wave by wave
        leaves: list[tuple[Ints, Ints, Floats]] = []  # their trees, parents, and the rows x weight that queries skip
        before = 0
        while len(wave.tree):
            legal = self._legal(wave)
            has_cut = legal.any(axis=1)
            leaf, node = wave.of(~has_cut), wave.of(has_cut)
            leaves.append((leaf.tree, leaf.parent, leaf.skips * leaf.rows))
            state = State(self.pieces.features(node.region), legal[has_cut])
            choices = policy(state)
            steps.append((node.tree, node.parent, node.left, node.rows, *state, *choices))
            wave = self._divided(node, choices.cut, ids, before)
            before += len(node.tree)
        return self._rewarded(steps, leaves, trees)

    def _roots(self, trees: int) -> Wave:
        zero = np.zeros(trees, np.int64)
        counts, region = np.tile(self.counts, (trees, 1)), np.ones((trees, self.pieces.sides.shape[2]), bool)
        all_open = np.ones((trees, len(self.clauses.weights)), bool)
        return Wave(
            *(np.arange(trees), zero - 1, zero == 0, zero, zero + self.rows, counts, region, all_open, np.zeros(trees))
        )

    def _legal(self, wave: Wave) -> Bools:
        """Return the legal cuts of each node; update `open` and `skips` from the parent's."""

        def update(nodes: slice) -> None:
            w = wave.of(nodes)
            update_queries(w.counts, w.rows, w.open, w.skips, self.clauses)

        parallel_map_slices(update, len(wave.tree))
        return (wave.counts >= self.least) & (wave.rows[:, None] - wave.counts >= self.least)

    def _divided(self, wave: Wave, cut: Ints, ids: npt.NDArray[np.int32], before: int) -> Wave:
        """Return both sides of every cut; the left sides come first."""
        left, right = np.zeros((2, *wave.counts.shape), np.int32)

        def fill(nodes: slice) -> None:
            w = wave.of(nodes)
            bits, counts = (self.by_cut, self.by_row, BYTE_TO_COUNTERS), (w.counts, left[nodes], right[nodes])
            divide(ids, (w.tree, w.start, w.end), cut[nodes], bits, counts)

        parallel_map_slices(fill, len(cut))
        middle = wave.start + wave.counts[np.arange(len(cut)), cut]
        number = before + np.arange(len(cut))
        sides = self.pieces.sides
        return Wave(
            np.concatenate([wave.tree] * 2),
            np.concatenate([number] * 2),
            np.repeat([True, False], len(cut)),
            np.concatenate([wave.start, middle]),
            np.concatenate([middle, wave.end]),
            np.concatenate([left, right]),
            np.concatenate([wave.region & sides[0, cut], wave.region & sides[1, cut]]),
            np.concatenate([wave.open] * 2),
            np.concatenate([wave.skips] * 2),
        )

    def _rewarded(
        self, steps: list[tuple[npt.NDArray[Any], ...]], leaves: list[tuple[Ints, Ints, Floats]], trees: int
    ) -> Episodes:
        """Add up the rewards of the leaves, from the last wave to the first."""
        tree, parent, left, rows, *rest = (np.concatenate(column) for column in zip(*steps, strict=True))
        saved, total = np.zeros(len(tree)), np.zeros(trees)
        for leaf_tree, leaf_parent, skipped_rows in leaves:
            np.add.at(total, leaf_tree, skipped_rows)
            np.add.at(saved, leaf_parent[leaf_parent >= 0], skipped_rows[leaf_parent >= 0])
        end = len(tree)
        for of_tree, of_parent, *_ in reversed(steps):
            in_wave = slice(end - len(of_tree), end)
            if in_wave.start:
                np.add.at(saved, of_parent, saved[in_wave])
            end = in_wave.start
        reward = saved / (self.weight * np.maximum(1, rows))
        return Episodes(tree, parent, left, rows, State(*rest[:2]), Choices(*rest[2:]), reward, total)


def _byte_to_counters() -> npt.NDArray[np.uint64]:
    """Return for each byte a word with one of its bits in each of eight bytes: an addition counts eight cuts."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint64).reshape(-1)


BYTE_TO_COUNTERS = _byte_to_counters()
MAX_COUNT = 255  # the most that a counter of one byte can hold


@compiled_loop(nogil=True)
def update_queries(counts: Any, rows: Any, is_open: Any, skips: Any, clauses: Any) -> None:
    """Update each node's open queries, and the weight of the queries that skip it; both are the parent's at first.

    An open query reads the node but might skip a part of it.
    """
    for i in range(len(counts)):
        some, other = counts[i] > 0, counts[i] < rows[i]
        before = np.flatnonzero(is_open[i])
        skips[i] += skipped(before, clauses, some, other, False)
        still_open, _ = open_queries(before, clauses, some, other)
        is_open[i] = False
        is_open[i][still_open] = True


@compiled_loop(nogil=True)
def divide(ids: Any, nodes: Any, cuts: Any, bits: Any, tallies: Any) -> None:
    """Move the rows on which a node's cut is TRUE to its front, and fill in the counts of both sides, zero at first.

    `nodes`: the tree of each, and the start and the end of its rows. `bits`: the outcomes by cut and by row, and
    `BYTE_TO_COUNTERS`. `tallies`: the counts of each node, of its left side and of its right side."""
    trees, starts, ends = nodes
    by_cut, by_row, spread = bits
    counts, left, right = tallies
    for i in range(len(trees)):
        rows = ids[trees[i], starts[i] : ends[i]]
        middle = _partition(rows, by_cut[cuts[i]])
        if 2 * middle <= len(rows):
            _tally(by_row, rows[:middle], spread, left[i])
            right[i] = counts[i] - left[i]
        else:
            _tally(by_row, rows[middle:], spread, right[i])
            left[i] = counts[i] - right[i]


@compiled_loop()
def _partition(rows: Any, bits: Any) -> Any:
    """Move the rows on which the bit is set to the front; return their number."""
    middle = np.int64(0)
    for at in range(len(rows)):
        r = rows[at]
        rows[at] = rows[middle]
        rows[middle] = r
        middle += np.int64((bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1))  # no branch that a CPU must predict
    return middle


@compiled_loop()
def _tally(by_row: Any, rows: Any, spread: Any, counts: Any) -> None:
    """Count for each cut the rows on which it is TRUE: eight counters in a word, emptied before one can overflow."""
    width = by_row.shape[1]
    lanes = np.empty(width, np.uint64)
    for first in range(0, len(rows), MAX_COUNT):
        lanes[:] = 0
        for at in range(first, min(first + MAX_COUNT, len(rows))):
            r = rows[at]
            for b in range(width):
                lanes[b] += spread[by_row[r, b]]
        for c in range(len(counts)):
            counts[c] += np.int32((lanes[c >> 3] >> np.uint64(8 * (c & 7))) & np.uint64(255))
