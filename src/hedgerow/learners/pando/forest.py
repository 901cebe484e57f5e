"""Grow several trees of cuts together: a query reads a row only if it reads the row's leaf in every tree (Pando, 6.1).

    tree 0   x < 50          tree 1   y < 50          product   x < 50
             /    \\                  /    \\                   /      \\
          cell 0  cell 1           cell 0  cell 1          y < 50    y < 50        four cells, two of them nearly
                                                           /    \\    /    \\         empty if x and y are much alike

The gain of a cut is the number of rows that queries skip by it, and by no other tree. The next cut is always the one
with the largest gain. Gains only fall while other trees grow, so an earlier gain is an upper bound: a leaf is computed
again only when its bound is the highest, and only for the cuts with the highest bounds.

The product of the trees is one tree again. Each of its leaves has the rows with the same leaf in every tree: Pando's
k-tuples. A tuple is a column of leaf numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.kernels import LEAST_GAIN
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import NO_CUT, NO_PARENT, OpenNode, tree_of
from hedgerow.core.learning.trees.kernels import open_queries, select_rows, shortened
from hedgerow.core.learning.truth import Words, count, pack
from hedgerow.core.parallel import parallel_map, parallel_map_slices
from hedgerow.core.workload.query_clauses import ClauseArrays
from hedgerow.learners.pando.kernels import changes, clear, gains_beside

MAX_ROWS = 1 << 18  # sample rows that trees grow on: there is a bit for each row, query and tree
AT_ONCE = 32  # the number of cuts in the first batch; the number of cuts tried doubles with each batch
BY_ROWS = np.zeros((4, 0, 0), bool)  # no promises: queries skip leaves by the facts of their rows
Changes = tuple[Ints, npt.NDArray[np.int32], Floats, Floats]
Nodes = list[list[int]]  # cut, left, right of each node, as in a tree; a cut is its number in the problem


def forest(
    problem: Problem, k: int, least: int, eps: float, by_cells: bool, most_cells: int, promised: Bools = BY_ROWS
) -> list[Nodes]:
    """Grow k trees whose leaves have `least` sample rows or more, until their product has `most_cells` leaves.

    `eps` and `by_cells` are as in `greedy`: with one tree and no limit of cells, this grows the same tree. With
    `promised`, of `promised_facts`, a query skips a leaf by the cuts above it, and not by what its sample rows show.
    """
    thinned, share = _thinned(problem)
    growth = _Growth(thinned, k, max(1, round(least * share)), eps, by_cells, promised)
    while growth.leaves and growth.cells < most_cells:
        growth.grow()
    for *_, leaf in growth.leaves:
        growth.close(leaf)
    return growth.nodes


def layout_of(problem: Problem, nodes: Nodes) -> TreeLayout:
    """Return a tree as a layout; its leaves are numbered from left to right."""
    tree = tree_of(problem, nodes)
    return tree.relabelled(np.argsort([leaf for leaf, _ in tree.paths()]).tolist())


def product(problem: Problem, trees: Sequence[TreeLayout], tuples: Ints) -> TreeLayout:
    """Return one tree that divides rows like all these trees together; leaf i has the rows of tuple i.

    `tuples` are columns in lexicographic order, each with a leaf of every tree. A cut that divides none of them is left
    out, so a row of another tuple goes to a leaf beside it.
    """
    number = {cut: i for i, cut in enumerate(problem.cuts)}
    right_from = [_first_on_the_right(tree) for tree in trees]
    nodes: Nodes = []
    leaves = 0
    todo = [(0, _root(trees[0]), np.arange(tuples.shape[1]), NO_PARENT, 0)]
    while todo:
        tree, node, some, parent, side = todo.pop()
        while node >= 0 or tree + 1 < len(trees):
            if node < 0:
                tree += 1
                node = _root(trees[tree])
                continue
            cut, left, right = trees[tree].nodes[node]
            goes_left = tuples[tree][some] < right_from[tree][node]
            if goes_left.all() or not goes_left.any():
                node = left if goes_left.all() else right
                continue
            break
        if node < 0:
            child, leaves = ~leaves, leaves + 1
        else:
            child = len(nodes)
            nodes.append([number[trees[tree].cuts[cut]], 0, 0])
            todo += [(tree, right, some[~goes_left], child, 2), (tree, left, some[goes_left], child, 1)]
        if parent != NO_PARENT:
            nodes[parent][side] = child
    return tree_of(problem, nodes)


def _root(tree: TreeLayout) -> int:
    return 0 if tree.nodes else ~0


def _first_on_the_right(tree: TreeLayout) -> Ints:
    """Return for each node the number of the first leaf on its right side."""
    first, on_the_right = np.zeros((2, len(tree.nodes)), np.int64)
    for node in reversed(tree.top_down()):
        _, left, right = tree.nodes[node]
        first[node] = ~left if left < 0 else first[left]
        on_the_right[node] = ~right if right < 0 else first[right]
    return on_the_right


def _thinned(problem: Problem) -> tuple[Problem, float]:
    """Return the problem with at most `MAX_ROWS` sample rows, and the share of the rows that it keeps."""
    step = -(-problem.truth.rows // MAX_ROWS)
    return (problem, 1.0) if step <= 1 else (replace(problem, truth=problem.truth.thinned(step)), 1 / step)


@dataclass
class _Leaf:
    """A leaf that may be cut: `best` is its best cut, computed when the other trees had `beside` cuts.

    `near`: no query gains yet, but the cut brings some query nearer to a gain. `changes`: see `_Growth._changes`; they
    do not depend on the other trees. `gains`: the gain of each cut when it was tried, an upper bound of its gain now.
    """

    tree: int
    node: OpenNode
    rows: Ints
    readers: Ints  # the queries that read the leaf
    parent: int
    side: int
    best: int = NO_CUT
    near: bool = False
    beside: int = 0
    changes: Changes | None = None
    gains: Floats = field(default_factory=lambda: np.zeros(0))


class _Growth:
    """Trees while they grow: `read[t]` has a bit for each query and row, whether the query reads the row's leaf."""

    def __init__(self, problem: Problem, k: int, least: int, eps: float, by_cells: bool, promised: Bools) -> None:
        self.problem, self.least, self.eps, self.by_cells = problem, least, eps, by_cells
        self.promised = promised
        self.clauses: ClauseArrays = problem.clauses.arrays
        queries, rows = len(problem.clauses.needs), problem.truth.rows
        self.read: list[Words] = [_all_read(queries, rows) for _ in range(k if k > 1 else 0)]
        self.cell = np.zeros(rows, np.int64)  # the cell of each row
        self.cells = 1
        self.nodes: list[Nodes] = [[] for _ in range(k)]
        self.done = [0] * k  # the number of final leaves of each tree
        self.leaves: list[tuple[bool, float, int, int, _Leaf]] = []  # a heap: the largest bound comes first
        self.pushed = 0
        node = _root_by_promises(problem) if promised.size else OpenNode.root(problem)
        root = _Leaf(0, node, np.arange(rows), np.arange(queries), NO_PARENT, 0)
        self._look_at(root)
        for tree in range(1, k):
            self._push(replace(root, tree=tree, gains=root.gains.copy()))

    def grow(self) -> None:
        """Cut the leaf with the largest gain, or compute it again if its gain may have fallen."""
        leaf = heappop(self.leaves)[-1]
        if leaf.beside != self._cuts_beside(leaf.tree):
            self._look_at(leaf)
        else:
            self._cut(leaf)

    def close(self, leaf: _Leaf) -> None:
        """Make the leaf a final leaf."""
        self._replace(leaf, ~self.done[leaf.tree])
        self.done[leaf.tree] += 1

    def _cuts_beside(self, tree: int) -> int:
        return sum(map(len, self.nodes)) - len(self.nodes[tree])

    def _look_at(self, leaf: _Leaf) -> None:
        leaf.beside = self._cuts_beside(leaf.tree)
        leaf.best = NO_CUT
        if leaf.node.rows >= 2 * self.least and len(leaf.node.cuts):
            reads = self._read_beside(leaf)
            self._try_cuts(leaf, reads)
            if leaf.best == NO_CUT and self.by_cells and not leaf.near:
                leaf.near, leaf.changes = True, None
                self._try_cuts(leaf, reads)
        self._push(leaf)

    def _push(self, leaf: _Leaf) -> None:
        if leaf.best == NO_CUT:
            self.close(leaf)
        else:
            self.pushed += 1
            heappush(self.leaves, (leaf.near, -leaf.gains[leaf.best], leaf.tree, self.pushed, leaf))

    def _read_beside(self, leaf: _Leaf) -> Words:
        """Return for each open query of the leaf the rows of the leaf that the query reads in all other trees."""
        queries = leaf.node.queries
        beside = [read[queries] for tree, read in enumerate(self.read) if tree != leaf.tree]
        if not beside:
            return _all_read(len(queries), len(leaf.rows))
        reads: Words = select_rows(np.bitwise_and.reduce(beside), leaf.rows)
        return reads

    def _try_cuts(self, leaf: _Leaf, reads: Words) -> None:
        """Find the cut with the largest gain; cuts whose earlier gain is below the best gain now are left out."""
        node, sizes, counts = leaf.node, count(leaf.node.bits), count(reads)
        if leaf.changes is None:
            leaf.changes, leaf.gains = self._changes(leaf, sizes), np.full(len(sizes), np.inf)
        changed = leaf.changes

        def gains_of(cuts: Ints) -> Floats:
            gains: Floats = gains_beside(cuts, changed, node, sizes, reads, counts, self.eps)
            return gains

        least = highest = LEAST_GAIN * node.rows
        order, first = np.argsort(-leaf.gains, kind="stable"), 0
        while first < len(order) and leaf.gains[order[first]] >= highest:
            batch = order[first : 2 * first + AT_ONCE]
            leaf.gains[batch] = np.concatenate(parallel_map(gains_of, np.array_split(batch, min(AT_ONCE, len(batch)))))
            first, highest = first + len(batch), max(highest, leaf.gains[batch].max())
        leaf.best = int(leaf.gains.argmax()) if highest > least else NO_CUT

    def _changes(self, leaf: _Leaf, sizes: Ints) -> Changes:
        """Return the changes by all cuts: the first change of each cut; the query and the gains of each change."""
        node, queries, clauses = leaf.node, leaf.node.queries, self.clauses
        if not leaf.near:
            clauses = shortened(queries, clauses, node.some, node.other)
            queries = np.arange(len(queries))

        def changes_of(cuts: slice) -> Changes:
            columns: Changes = changes(node, sizes, queries, clauses, self.least, leaf.near, self.promised, cuts)
            return columns

        slices = parallel_map_slices(changes_of, len(sizes))
        row, query, by_left, by_right = (np.concatenate(column) for column in zip(*slices, strict=True))
        return np.searchsorted(row, np.arange(len(sizes) + 1)), query, by_left, by_right

    def _cut(self, leaf: _Leaf) -> None:
        tree, cut = leaf.tree, int(leaf.node.cuts[leaf.best])
        number = len(self.nodes[tree])
        self._replace(leaf, number)
        self.nodes[tree].append([cut, 0, 0])
        goes_left = self.problem.truth.of_cut(cut)[leaf.rows]
        self._divide_cells(leaf.rows, goes_left)
        halves = self._halves(leaf)
        for side, half, in_half in zip((1, 2), halves, (goes_left, ~goes_left), strict=True):
            may = self.problem.clauses.may(half.some[None], half.other[None])[0][leaf.readers]
            rows = leaf.rows[in_half]
            if self.read:
                clear(self.read[tree], leaf.readers[~may], rows)
            self._look_at(_Leaf(tree, half, rows, leaf.readers[may], number, side))

    def _halves(self, leaf: _Leaf) -> tuple[OpenNode, OpenNode]:
        node, every = leaf.node, not self.by_cells
        if not self.promised.size:
            return node.divided(leaf.best, self.clauses, every)
        promised = self.promised[:, node.cuts[leaf.best]]
        sides = [facts & left for facts, left in zip((node.some, node.other) * 2, promised, strict=True)]
        return node.divided_with(sides, leaf.best, self.clauses, every)

    def _divide_cells(self, rows: Ints, goes_left: Bools) -> None:
        """Divide the cells of these rows: where a cell has rows on both sides, those on the left get a new cell."""
        old, of, sizes = np.unique(self.cell[rows], return_inverse=True, return_counts=True)
        left = np.bincount(of[goes_left], minlength=len(old))
        divided = (left > 0) & (left < sizes)
        new = np.where(divided, self.cells + np.cumsum(divided) - 1, old)
        self.cell[rows[goes_left]] = new[of[goes_left]]
        self.cells += int(divided.sum())

    def _replace(self, leaf: _Leaf, child: int) -> None:
        if leaf.parent != NO_PARENT:
            self.nodes[leaf.tree][leaf.parent][leaf.side] = child


def _root_by_promises(problem: Problem) -> OpenNode:
    """Return a root of which nothing is known: its cuts are those of the queries, for no others can skip a leaf."""
    node = OpenNode.root(problem)
    unknown = np.ones(len(node.some), bool)
    queries, used = open_queries(np.arange(len(problem.clauses.needs)), problem.clauses.arrays, unknown, unknown)
    cuts = np.flatnonzero(used)
    return OpenNode(problem.truth.words[cuts], node.rows, cuts, unknown, unknown, queries, used, ~used)


def _all_read(queries: int, rows: int) -> Words:
    return np.repeat(pack(np.ones((1, rows), bool)), queries, axis=0)
