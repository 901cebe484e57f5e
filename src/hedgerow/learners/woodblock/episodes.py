"""Grow many trees of cuts together, wave by wave: a policy chooses the cuts of all nodes of a wave at once (5.2).

A wave holds the nodes of one depth of all trees. A node is a range of its tree's row numbers, and a cut divides it in
place. For all cuts at once, rows are counted on the smaller side only; the other side is the difference:

    ids of tree 0  | 7 2 9 4 | 1 8 | 3 0 6 5 |      counts of a node: on how many of its rows each cut is TRUE
                     node 0   node 1  node 2        none or all rows: so the counts show which queries skip a leaf
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.cells.merge import Cells
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import open_queries, pack, skipped
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.workload.query_clauses import ClauseArrays
from hedgerow.learners.woodblock.region_bits import Pieces

Counts = npt.NDArray[np.int32]


class Wave(NamedTuple):
    """Nodes that may be cut: tree, the decision that made the node (`parent`, -1: a root) and its side, and the rows.

    `open` are the queries that might skip a part of the node, `skips` is the weight of those that skip all of it.
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
    """The network's input for some nodes: features, legal cuts and, with `ratios`, the gain ratio of each cut."""

    features: Bools
    legal: Bools
    ratios: npt.NDArray[np.float32]

    def of(self, chosen: Any) -> State:
        return State(*(field[chosen] for field in self))


class OpenNodes(NamedTuple):
    """The nodes for which a policy chooses cuts: the decision and the side that made each, and the number of decisions
    in earlier waves."""

    state: State
    parent: Ints
    left: Bools
    before: int


class Choices(NamedTuple):
    """A policy's choices: for each node the cut (-1: a leaf), its log probability, and the expected reward."""

    cut: Ints
    likely: Floats
    worth: Floats

    def of(self, chosen: Any) -> Choices:
        return Choices(*(field[chosen] for field in self))


class Decisions(NamedTuple):
    """Decisions: the tree of each, the decision and the side that made its node, and the node's number of rows."""

    tree: Ints
    parent: Ints
    left: Bools
    rows: Ints


Policy = Callable[[OpenNodes], Choices]
Roots = tuple[Wave, npt.NDArray[np.int32]]  # the roots of trees, and the row numbers of each tree


@dataclass(frozen=True)
class Episodes:
    """All decisions of some trees, parents first. `saved` is the rows x weight that queries skip in the leaves below
    each, `reward` that as a share of the possible maximum. `kids` are the decisions on both sides (-1: a leaf)."""

    tree: Ints
    parent: Ints
    left: Bools
    rows: Ints
    state: State
    choices: Choices
    kids: Ints
    saved: Floats
    reward: Floats
    total: Floats  # for each tree, the rows x weight that queries skip
    cells: Cells  # the leaves of a single tree, if they were kept
    cell: Ints  # for each row of the sample, its leaf in `cells`; -1: none

    def nodes(self, tree: int = 0, at: int = -1, instead: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """A tree as nodes (cut, left, right), ~i for leaf i; the subtree `instead` replaces the decision `at`."""
        roots = np.flatnonzero((self.tree == tree) & (self.parent < 0)).tolist()
        return self.below(roots[0], at, instead) if roots else []

    def below(self, start: int, at: int = -1, instead: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """The subtree that begins with the decision `start`, in the same form."""
        nodes: list[list[int]] = []
        leaves = 0
        todo = [(start, -1, 0)]
        while todo:
            here, parent, side = todo.pop()
            if here < 0:
                child, leaves = ~leaves, leaves + 1
            elif here == at:
                child = len(nodes) if instead else ~leaves
                for cut, *kids in instead:
                    nodes.append([cut, *(kid + child if kid >= 0 else kid - leaves for kid in kids)])
                leaves += len(instead) + 1
            else:
                child = len(nodes)
                nodes.append([int(self.choices.cut[here]), 0, 0])
                todo += [(int(self.kids[here, 1]), child, 2), (int(self.kids[here, 0]), child, 1)]
            if parent >= 0:
                nodes[parent][side] = child
        return nodes

    def path(self, at: int) -> list[tuple[int, bool]]:
        """The cuts above a decision, each with the side taken (True: left)."""
        path = []
        while self.parent[at] >= 0:
            side, at = bool(self.left[at]), int(self.parent[at])
            path.append((int(self.choices.cut[at]), side))
        return path


@dataclass(frozen=True)
class Forest:
    """A problem prepared for growing trees whose leaves have at least `least` sample rows.

    `asked`: only cuts that occur in an open query are legal, and a node without open queries is a leaf. `ratios`: the
    policy gets the gain ratio of each cut.
    """

    least: int
    asked: bool
    ratios: bool
    rows: int
    weight: float  # of all queries
    by_cut: npt.NDArray[np.uint64]
    by_row: npt.NDArray[np.uint8]
    counts: Counts
    pieces: Pieces
    clauses: ClauseArrays

    @staticmethod
    def of(problem: Problem, least: int, asked: bool, ratios: bool = False) -> Forest:
        truth = problem.truth
        by_row = np.ascontiguousarray(np.packbits(truth, axis=0, bitorder="little").T)
        return Forest(
            least,
            asked,
            ratios,
            truth.shape[1],
            float(sum(problem.weights)) or 1.0,
            pack(truth),
            by_row,
            truth.sum(axis=1, dtype=np.int32),
            Pieces.of(problem.cuts),
            problem.clauses.arrays,
        )

    def root(self, trees: int) -> Roots:
        """The roots of some trees, and their rows."""
        region = np.ones(self.pieces.sides.shape[2], bool)
        return self._copies(trees, np.arange(self.rows, dtype=np.int32), self.counts, region)

    def below(self, path: Sequence[tuple[int, bool]], trees: int) -> Roots:
        """Copies of one node as the roots of some trees; `path` are the cuts above it, with the sides taken."""
        region = np.ones(self.pieces.sides.shape[2], bool)
        for cut, left in path:
            region &= self.pieces.sides[0 if left else 1, cut]
        own = np.flatnonzero(self.inside(path)).astype(np.int32)
        bits = np.unpackbits(self.by_row[own], axis=1, count=len(self.counts), bitorder="little")
        return self._copies(trees, own, bits.sum(axis=0, dtype=np.int32), region)

    def inside(self, path: Sequence[tuple[int, bool]]) -> Bools:
        """For each row, whether it lies in the node with this path."""
        is_inside = np.ones(self.rows, bool)
        for cut, left in path:
            true = np.unpackbits(self.by_cut[cut].view(np.uint8), count=self.rows, bitorder="little").astype(bool)
            is_inside &= true == left
        return is_inside

    def _copies(self, trees: int, ids: npt.NDArray[np.int32], counts: Counts, region: Bools) -> Roots:
        zero = np.zeros(trees, np.int64)
        counts, region = np.tile(counts, (trees, 1)), np.tile(region, (trees, 1))
        all_open = np.ones((trees, len(self.clauses.weights)), bool)
        wave = Wave(
            np.arange(trees), zero - 1, zero == 0, zero, zero + len(ids), counts, region, all_open, np.zeros(trees)
        )
        return wave, np.tile(ids, (trees, 1))

    def grown(self, policy: Policy, roots: Roots, keep: bool = False) -> Episodes:
        """Grow trees until the policy makes every node a leaf; with `keep`, the leaves are returned as cells."""
        wave, ids = roots
        made: list[tuple[Decisions, State, Choices]] = []  # wave by wave
        leaves: list[tuple[Ints, Ints, Floats]] = []  # their trees, parents, and the rows x weight that queries skip
        kept: list[Wave] = []
        before = 0
        while len(wave.tree):
            legal, ratios = self._legal(wave)
            can = legal.any(axis=1)
            own = wave.of(can)
            state = State(self.pieces.features(own.region), legal[can], ratios[can])
            choices = policy(OpenNodes(state, own.parent, own.left, before))
            cuts = choices.cut >= 0
            is_leaf = np.logical_not(can)
            is_leaf[np.flatnonzero(can)[~cuts]] = True
            leaf = wave.of(is_leaf)
            leaves.append((leaf.tree, leaf.parent, leaf.skips * leaf.rows))
            if keep:
                kept.append(leaf)
            own, choices = own.of(cuts), choices.of(cuts)
            made.append((Decisions(own.tree, own.parent, own.left, own.rows), state.of(cuts), choices))
            wave = self._divided(own, choices.cut, ids, before)
            before += len(own.tree)
        return self._rewarded(made, leaves, len(ids), *self._cells(kept, ids))

    def _cells(self, leaves: Sequence[Wave], ids: npt.NDArray[np.int32]) -> tuple[Cells, Ints]:
        """The leaves of a single tree as cells, and for each row of the sample the number of its leaf (-1: none).

        Without `leaves` there are no cells, and every row has -1.
        """
        none = np.zeros((0, len(self.counts)), np.int32)
        rows = np.concatenate([np.zeros(0, np.int64), *(leaf.rows for leaf in leaves)])
        counts = np.concatenate([none, *(leaf.counts for leaf in leaves)])
        cell = np.full(self.rows, -1)
        if len(rows):
            order = np.argsort(np.concatenate([leaf.start for leaf in leaves]))
            cell[ids[0]] = np.repeat(order, rows[order])
        return Cells(rows, counts > 0, counts < rows[:, None]), cell

    def _legal(self, wave: Wave) -> tuple[Bools, npt.NDArray[np.float32]]:
        """The legal cuts of each node, and their gain ratios. Updates `open` and `skips`, which are the parent's."""
        legal = np.empty(wave.counts.shape, bool)
        ratios = np.zeros(wave.counts.shape if self.ratios else (len(legal), 0), np.float32)

        def some(own: slice) -> None:
            w = wave.of(own)
            look(w.counts, w.rows, w.open, w.skips, self.least, self.asked, self.clauses, legal[own], ratios[own])

        parallel_map_slices(some, len(legal))
        return legal, ratios

    def _divided(self, wave: Wave, cut: Ints, ids: npt.NDArray[np.int32], before: int) -> Wave:
        """Both sides of every cut; the left sides come first."""
        left, right = np.zeros((2, *wave.counts.shape), np.int32)

        def some(own: slice) -> None:
            w = wave.of(own)
            rows = ids, w.tree, w.start, w.end
            divide(*rows, cut[own], self.by_cut, self.by_row, BYTE_TO_COUNTERS, w.counts, left[own], right[own])

        parallel_map_slices(some, len(cut))
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
        self,
        made: list[tuple[Decisions, State, Choices]],
        leaves: list[tuple[Ints, Ints, Floats]],
        trees: int,
        cells: Cells,
        cell: Ints,
    ) -> Episodes:
        """Add up the rewards of the leaves, from the last wave to the first."""
        waves = [wave for wave, *_ in made]
        tree, parent, left, rows = (np.concatenate(own) for own in zip(*waves, strict=True))
        saved, total = np.zeros(len(tree)), np.zeros(trees)
        for leaf_tree, below, skipped_there in leaves:
            np.add.at(total, leaf_tree, skipped_there)
            np.add.at(saved, below[below >= 0], skipped_there[below >= 0])
        end = len(tree)
        for wave in reversed(waves):
            own = slice(end - len(wave.tree), end)
            if own.start:
                np.add.at(saved, wave.parent, saved[own])
            end = own.start
        kids = np.full((len(tree), 2), -1)
        inner = np.flatnonzero(parent >= 0)
        kids[parent[inner], np.where(left[inner], 0, 1)] = inner
        choices = Choices(*(np.concatenate(own) for own in zip(*(s for *_, s in made), strict=True)))
        state = State(*(np.concatenate(own) for own in zip(*(s for _, s, _ in made), strict=True)))
        reward = saved / (self.weight * np.maximum(1, rows))
        return Episodes(tree, parent, left, rows, state, choices, kids, saved, reward, total, cells, cell)


def following(nodes: Sequence[Sequence[int]]) -> Policy:
    """A policy that grows a given tree: nodes (cut, left, right) with the problem's cuts."""
    at: dict[int, int] = {}  # for each decision, the node of the given tree

    def policy(open_nodes: OpenNodes) -> Choices:
        cuts: list[int] = []
        number = open_nodes.before
        for parent, left in zip(open_nodes.parent.tolist(), open_nodes.left.tolist(), strict=True):
            node = nodes[at[parent]][1 if left else 2] if parent >= 0 else 0 if nodes else -1
            cuts.append(nodes[node][0] if node >= 0 else -1)
            if node >= 0:
                at[number] = node
                number += 1
        none = np.zeros(len(cuts))
        return Choices(np.array(cuts, np.int64), none, none)

    return policy


def _byte_to_counters() -> npt.NDArray[np.uint64]:
    """For each byte, a word with one bit of it in each of eight bytes: an addition then counts eight cuts."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint64).reshape(-1)


BYTE_TO_COUNTERS = _byte_to_counters()
RATIO_EPS = 0.25  # added to a split's entropy in a gain ratio
MAX_COUNT = 255  # of a counter of one byte


@compiled_loop(nogil=True)
def look(
    counts: Any,
    rows: Any,
    is_open: Any,
    skips: Any,
    least: int,
    only_asked: bool,
    clauses: Any,
    legal: Any,
    ratios: Any,
) -> None:
    """Fill in the legal cuts of each node and, if `ratios` has columns, their gain ratios; update `is_open` and
    `skips`, which are the parent's at first."""
    for i in range(len(counts)):
        asked = _asked(counts[i], rows[i], is_open[i], skips[i : i + 1], clauses)
        for c in range(counts.shape[1]):
            n = counts[i, c]
            legal[i, c] = n >= least and rows[i] - n >= least and (asked[c] or not only_asked)
        if ratios.shape[1] and legal[i].any():
            _ratios(counts[i], rows[i], np.flatnonzero(is_open[i]), clauses, ratios[i])


@compiled_loop(nogil=True)
def _holds(fact: int, counts: Any, rows: int) -> int:
    """The number of rows on which a fact holds."""
    n: int = counts[fact >> 1]
    return rows - n if fact & 1 else n


@compiled_loop(nogil=True)
def _ratios(counts: Any, rows: int, queries: Any, clauses: Any, ratios: Any) -> None:
    """Fill in the gain ratio of each cut: the share that these queries would skip, divided by the split's entropy.

    An estimate that looks at each cut alone: if a clause of k possible facts loses one, it counts as 1 / k skipped.
    """
    facts, fact_starts, needs, need_starts, weights = clauses
    asked = 0.0
    for q in queries:
        asked += weights[q]
        for at in range(need_starts[q], need_starts[q + 1]):
            own = facts[fact_starts[needs[at]] : fact_starts[needs[at] + 1]]
            possible, sure = 0, False
            for fact in own:
                n = _holds(fact, counts, rows)
                possible += n > 0
                sure |= n == rows
            if not sure:
                for fact in own:
                    n = _holds(fact, counts, rows)
                    if n > 0:
                        ratios[fact >> 1] += weights[q] * (rows - n) / possible
    for c in np.flatnonzero(ratios):
        share = counts[c] / rows
        entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
        ratios[c] /= asked * rows * (RATIO_EPS + entropy)


@compiled_loop()
def _asked(counts: Any, rows: int, is_open: Any, skips: Any, clauses: Any) -> Any:
    """Update a node's open queries, and the weight of the queries that skip it, from the parent's to its own.

    An open query reads the node but might skip a part of it. Returns for each cut whether it occurs in an open query.
    """
    some, other = counts > 0, counts < rows
    before = np.flatnonzero(is_open)
    skips[0] += skipped(before, clauses, some, other, False)
    now, asked = open_queries(before, clauses, some, other)
    is_open[:] = False
    for q in now:
        is_open[q] = True
    return asked


@compiled_loop(nogil=True)
def divide(
    ids: Any,
    trees: Any,
    starts: Any,
    ends: Any,
    cuts: Any,
    by_cut: Any,
    by_row: Any,
    spread: Any,
    counts: Any,
    left: Any,
    right: Any,
) -> None:
    """Move the rows on which a node's cut is TRUE to its front, and fill in the counts of both sides, zero at first."""
    for i in range(len(trees)):
        own = ids[trees[i], starts[i] : ends[i]]
        middle = _partition(own, by_cut[cuts[i]])
        if 2 * middle <= len(own):
            _tally(by_row, own[:middle], spread, left[i])
            right[i] = counts[i] - left[i]
        else:
            _tally(by_row, own[middle:], spread, right[i])
            left[i] = counts[i] - right[i]


@compiled_loop()
def _partition(own: Any, bits: Any) -> Any:
    """Move the rows on which the bit is set to the front; returns their number."""
    middle = np.int64(0)
    for at in range(len(own)):
        r = own[at]
        own[at] = own[middle]
        own[middle] = r
        middle += np.int64((bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1))  # no branch to guess
    return middle


@compiled_loop()
def _tally(by_row: Any, own: Any, spread: Any, counts: Any) -> None:
    """Count for each cut the rows on which it is TRUE: eight counters in a word, emptied before one can overflow."""
    width = by_row.shape[1]
    lanes = np.empty(width, np.uint64)
    for first in range(0, len(own), MAX_COUNT):
        lanes[:] = 0
        for at in range(first, min(first + MAX_COUNT, len(own))):
            r = own[at]
            for b in range(width):
                lanes[b] += spread[by_row[r, b]]
        for c in range(len(counts)):
            counts[c] += np.int32((lanes[c >> 3] >> np.uint64(8 * (c & 7))) & np.uint64(255))
