"""Trees of cuts grown many at a time, wave by wave, for a policy that is asked about all open nodes at once (5.2).

A wave has the nodes of one depth of all trees. A node is a stretch of its tree's row numbers; a cut divides it in
place, rows are counted on the smaller side only, for all cuts at once, and the other side is the difference:

    ids of tree 0  | 7 2 9 4 | 1 8 | 3 0 6 5 |      counts of a node: on how many of its rows is each cut TRUE
                     node 0   node 1  node 2        0: never TRUE, all: always; so a leaf knows what it skips
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from hedgerow.core.learning.cells.merge import Cells
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import open_queries, pack, skipped
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.pruning.block_stats import Bools, Ints
from hedgerow.core.workload.query_clauses import Listed
from hedgerow.learners.woodblock.region_bits import Pieces

Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Wave(NamedTuple):
    """Nodes that wait for a cut: which tree's, made by which decision (-1: a root) on which side, and what is known:
    which queries a part of it might still let skip (`open`), and the weight of those that all of it does (`skips`)."""

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
    """What a network is told of some nodes: their features, the cuts they may take and, perhaps, gain ratios of all."""

    features: Bools
    legal: Bools
    ratios: npt.NDArray[np.float32]

    def of(self, chosen: Any) -> State:
        return State(*(field[chosen] for field in self))


class Seen(NamedTuple):
    """The nodes that a policy has to cut: which decision made them on which side, and how many decisions there were
    before."""

    state: State
    parent: Ints
    left: Bools
    before: int


class Said(NamedTuple):
    """The cut of each node, -1 for a leaf, how likely it was (as a logarithm), and what the node seemed worth."""

    cut: Ints
    likely: Floats
    worth: Floats

    def of(self, chosen: Any) -> Said:
        return Said(*(field[chosen] for field in self))


class Decided(NamedTuple):
    """Of some decisions whose tree they are of, by which decision and on which side their nodes came, and the rows."""

    tree: Ints
    parent: Ints
    left: Bools
    rows: Ints


Policy = Callable[[Seen], Said]


Roots = tuple[Wave, npt.NDArray[np.int32]]  # and the row numbers of their trees


@dataclass(frozen=True)
class Episodes:
    """All decisions of some trees, parents first. `saved` is what the leaves below each let queries skip, rows x
    weight; `reward` that as a share of the most there could be. `kids` are the decisions on both sides, -1: a leaf."""

    tree: Ints
    parent: Ints
    left: Bools
    rows: Ints
    state: State
    said: Said
    kids: Ints
    saved: Floats
    reward: Floats
    total: Floats  # by tree, what all of it lets queries skip
    cells: Cells  # the leaves of a tree, if they were to be kept
    cell: Ints  # and of each of all rows the one it lies in; -1: none

    def nodes(self, tree: int = 0, at: int = -1, instead: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """A tree as (cut, left, right) with ~leaf; with something else in place of the decision `at`."""
        roots = np.flatnonzero((self.tree == tree) & (self.parent < 0)).tolist()
        return self.below(roots[0], at, instead) if roots else []

    def below(self, start: int, at: int = -1, instead: Sequence[Sequence[int]] = ()) -> list[list[int]]:
        """The same of what begins with a decision."""
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
                nodes.append([int(self.said.cut[here]), 0, 0])
                todo += [(int(self.kids[here, 1]), child, 2), (int(self.kids[here, 0]), child, 1)]
            if parent >= 0:
                nodes[parent][side] = child
        return nodes

    def path(self, at: int) -> list[tuple[int, bool]]:
        """The cuts above a decision, and the sides taken."""
        found = []
        while self.parent[at] >= 0:
            side, at = bool(self.left[at]), int(self.parent[at])
            found.append((int(self.said.cut[at]), side))
        return found


@dataclass(frozen=True)
class Forest:
    """A problem made ready for growing trees whose leaves have at least `least` sample rows.

    `asked`: only cuts that an open query asks for are legal, and a node without open queries is a leaf. `ratios`: the
    policy is told what each cut gains.
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
    clauses: Listed

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
            problem.clauses.lists,
        )

    def root(self, trees: int) -> Roots:
        """The roots of so many trees, and their rows."""
        region = np.ones(self.pieces.sides.shape[2], bool)
        return self._copies(trees, np.arange(self.rows, dtype=np.int32), self.counts, region)

    def below(self, path: Sequence[tuple[int, bool]], trees: int) -> Roots:
        """The same of a node of a tree, by the cuts above it and the sides taken."""
        region = np.ones(self.pieces.sides.shape[2], bool)
        for cut, left in path:
            region &= self.pieces.sides[0 if left else 1, cut]
        own = np.flatnonzero(self.inside(path)).astype(np.int32)
        bits = np.unpackbits(self.by_row[own], axis=1, count=len(self.counts), bitorder="little")
        return self._copies(trees, own, bits.sum(axis=0, dtype=np.int32), region)

    def inside(self, path: Sequence[tuple[int, bool]]) -> Bools:
        """Which rows such a node has."""
        found = np.ones(self.rows, bool)
        for cut, left in path:
            true = np.unpackbits(self.by_cut[cut].view(np.uint8), count=self.rows, bitorder="little").astype(bool)
            found &= true == left
        return found

    def _copies(self, trees: int, ids: npt.NDArray[np.int32], counts: Counts, region: Bools) -> Roots:
        zero = np.zeros(trees, np.int64)
        counts, region = np.tile(counts, (trees, 1)), np.tile(region, (trees, 1))
        all_open = np.ones((trees, len(self.clauses[4])), bool)
        wave = Wave(
            np.arange(trees), zero - 1, zero == 0, zero, zero + len(ids), counts, region, all_open, np.zeros(trees)
        )
        return wave, np.tile(ids, (trees, 1))

    def grown(self, policy: Policy, roots: Roots, keep: bool = False) -> Episodes:
        """Ask the policy until every node is a leaf; with `keep` the leaves are told as cells."""
        wave, ids = roots
        made: list[tuple[Decided, State, Said]] = []  # decisions, a wave after the other
        leaves: list[tuple[Ints, Ints, Floats]] = []  # whose, below which decision, and what queries skip there
        kept: list[Wave] = []
        before = 0
        while len(wave.tree):
            legal, ratios = self._legal(wave)
            can = legal.any(axis=1)
            own = wave.of(can)
            state = State(self.pieces.features(own.region), legal[can], ratios[can])
            said = policy(Seen(state, own.parent, own.left, before))
            cuts = said.cut >= 0
            is_leaf = np.logical_not(can)
            is_leaf[np.flatnonzero(can)[~cuts]] = True
            leaf = wave.of(is_leaf)
            leaves.append((leaf.tree, leaf.parent, leaf.skips * leaf.rows))
            if keep:
                kept.append(leaf)
            own, said = own.of(cuts), said.of(cuts)
            made.append((Decided(own.tree, own.parent, own.left, own.rows), state.of(cuts), said))
            wave = self._divided(own, said.cut, ids, before)
            before += len(own.tree)
        return self._rewarded(made, leaves, len(ids), *self._cells(kept, ids))

    def _cells(self, leaves: Sequence[Wave], ids: npt.NDArray[np.int32]) -> tuple[Cells, Ints]:
        """The leaves as cells, and of each row the one it lies in, where they were kept: of a single tree."""
        none = np.zeros((0, len(self.counts)), np.int32)
        rows = np.concatenate([np.zeros(0, np.int64), *(leaf.rows for leaf in leaves)])
        counts = np.concatenate([none, *(leaf.counts for leaf in leaves)])
        cell = np.full(self.rows, -1)
        if len(rows):
            order = np.argsort(np.concatenate([leaf.start for leaf in leaves]))
            cell[ids[0]] = np.repeat(order, rows[order])
        return Cells(rows, counts > 0, counts < rows[:, None]), cell

    def _legal(self, wave: Wave) -> tuple[Bools, npt.NDArray[np.float32]]:
        """Which cuts each node may take, and their gain ratios. What is open and skipped above it becomes what is so at
        the node itself."""
        legal = np.empty(wave.counts.shape, bool)
        ratios = np.zeros(wave.counts.shape if self.ratios else (len(legal), 0), np.float32)

        def some(own: slice) -> None:
            w = wave.of(own)
            look(w.counts, w.rows, w.open, w.skips, self.least, self.asked, *self.clauses, legal[own], ratios[own])

        parallel_map_slices(some, len(legal))
        return legal, ratios

    def _divided(self, wave: Wave, cut: Ints, ids: npt.NDArray[np.int32], before: int) -> Wave:
        """Both sides of every cut, the left ones first."""
        left, right = np.zeros((2, *wave.counts.shape), np.int32)

        def some(own: slice) -> None:
            w = wave.of(own)
            rows = ids, w.tree, w.start, w.end
            divide(*rows, cut[own], self.by_cut, self.by_row, SPREAD, w.counts, left[own], right[own])

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
        made: list[tuple[Decided, State, Said]],
        leaves: list[tuple[Ints, Ints, Floats]],
        trees: int,
        cells: Cells,
        cell: Ints,
    ) -> Episodes:
        """What the leaves let queries skip, added up from below."""
        waves = [wave for wave, *_ in made]
        tree, parent, left, rows = (np.concatenate(own) for own in zip(*waves, strict=True))
        saved, total = np.zeros(len(tree)), np.zeros(trees)
        for whose, below, skipped_there in leaves:
            np.add.at(total, whose, skipped_there)
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
        said = Said(*(np.concatenate(own) for own in zip(*(s for *_, s in made), strict=True)))
        state = State(*(np.concatenate(own) for own in zip(*(s for _, s, _ in made), strict=True)))
        reward = saved / (self.weight * np.maximum(1, rows))
        return Episodes(tree, parent, left, rows, state, said, kids, saved, reward, total, cells, cell)


def following(nodes: Sequence[Sequence[int]]) -> Policy:
    """A policy that grows a tree that is there already, given as (cut, left, right) with the problem's cuts."""
    at: dict[int, int] = {}  # by decision, the node of the given tree

    def policy(seen: Seen) -> Said:
        found: list[int] = []
        number = seen.before
        for parent, left in zip(seen.parent.tolist(), seen.left.tolist(), strict=True):
            node = nodes[at[parent]][1 if left else 2] if parent >= 0 else 0 if nodes else -1
            found.append(nodes[node][0] if node >= 0 else -1)
            if node >= 0:
                at[number] = node
                number += 1
        none = np.zeros(len(found))
        return Said(np.array(found, np.int64), none, none)

    return policy


def _spread() -> npt.NDArray[np.uint64]:
    """By byte, its bits one to a byte: what counts eight cuts in one addition."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.ascontiguousarray(bits).view(np.uint64).reshape(-1)


SPREAD = _spread()


EPS = 0.25  # added to a split's entropy


@njit(cache=True, nogil=True)
def look(
    counts: Any,
    rows: Any,
    is_open: Any,
    skips: Any,
    least: int,
    only_asked: bool,
    facts: Any,
    in_facts: Any,
    needs: Any,
    in_needs: Any,
    weights: Any,
    legal: Any,
    ratios: Any,
) -> None:
    """Fills in which cuts each node may take and, where there is room, what they gain; and brings `is_open` and `skips`
    up to date, which are its parent's."""
    for i in range(len(counts)):
        asked = _asked(counts[i], rows[i], is_open[i], skips[i : i + 1], facts, in_facts, needs, in_needs, weights)
        for c in range(counts.shape[1]):
            n = counts[i, c]
            legal[i, c] = n >= least and rows[i] - n >= least and (asked[c] or not only_asked)
        if ratios.shape[1] and legal[i].any():
            now = np.flatnonzero(is_open[i])
            _ratios(counts[i], rows[i], now, (facts, in_facts, needs, in_needs, weights), ratios[i])


@njit(cache=True, nogil=True)
def _holds(fact: int, counts: Any, rows: int) -> int:
    """On how many rows."""
    n: int = counts[fact >> 1]
    return rows - n if fact & 1 else n


@njit(cache=True, nogil=True)
def _ratios(counts: Any, rows: int, queries: Any, clauses: Any, found: Any) -> None:
    """What each cut would let these queries skip, as a share for each bit of its split's entropy. To be fast, a cut
    counts by itself alone: without a fact, a clause of k facts that may still hold is the k-th part of skipped."""
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
                        found[fact >> 1] += weights[q] * (rows - n) / possible
    for c in np.flatnonzero(found):
        share = counts[c] / rows
        entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
        found[c] /= asked * rows * (EPS + entropy)


@njit(cache=True)
def _asked(
    counts: Any,
    rows: int,
    is_open: Any,
    skips: Any,
    facts: Any,
    in_facts: Any,
    needs: Any,
    in_needs: Any,
    weights: Any,
) -> Any:
    clauses = facts, in_facts, needs, in_needs, weights
    some, other = counts > 0, counts < rows
    before = np.flatnonzero(is_open)
    skips[0] += skipped(before, clauses, some, other, False)
    now, asked = open_queries(before, clauses, some, other)
    is_open[:] = False
    for q in now:
        is_open[q] = True
    return asked


@njit(cache=True, nogil=True)
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
    """Bring each node's rows on which its cut is TRUE to the front; the counts of both sides, which are zero before."""
    for i in range(len(trees)):
        own = ids[trees[i], starts[i] : ends[i]]
        middle = _partition(own, by_cut[cuts[i]])
        if 2 * middle <= len(own):
            _tally(by_row, own[:middle], spread, left[i])
            right[i] = counts[i] - left[i]
        else:
            _tally(by_row, own[middle:], spread, right[i])
            left[i] = counts[i] - right[i]


@njit(cache=True)
def _partition(own: Any, bits: Any) -> Any:
    middle = np.int64(0)
    for at in range(len(own)):
        r = own[at]
        own[at] = own[middle]
        own[middle] = r
        middle += np.int64((bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1))  # no branch to guess
    return middle


@njit(cache=True)
def _tally(by_row: Any, own: Any, spread: Any, found: Any) -> None:
    """On how many of these rows is each cut TRUE: eight counters in a word, emptied before one could overflow."""
    width = by_row.shape[1]
    lanes = np.empty(width, np.uint64)
    for first in range(0, len(own), 255):
        lanes[:] = 0
        for at in range(first, min(first + 255, len(own))):
            r = own[at]
            for b in range(width):
                lanes[b] += spread[by_row[r, b]]
        for c in range(len(found)):
            found[c] += np.int32((lanes[c >> 3] >> np.uint64(8 * (c & 7))) & np.uint64(255))
