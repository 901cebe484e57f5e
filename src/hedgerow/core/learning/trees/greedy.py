"""Grow a tree of cuts greedily: every node takes its best cut; depth first, left before right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.tree import Node, TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.kernels import (
    CutRule,
    best_cut,
    fill_facts,
    open_queries,
    select_rows,
    shortened,
)
from hedgerow.core.learning.truth import Words, count
from hedgerow.core.parallel import parallel_map_slices
from hedgerow.core.workload.query_clauses import ClauseArrays

MAX_WORDS_ON_ONE_CORE = 1_000_000  # a search for the best cut that reads more 64-bit words uses all cores
CLEARLY_LESS = 0.01  # relative: a smaller difference on held-out queries may be chance
NO_CUT = NO_PARENT = -1
Criterion = Choice["skip", "gain_ratio"]


def checked_eps(problem: Problem, criterion: Criterion) -> float:
    """Return the number to add to a split's entropy; it grows with the share of synthetic queries. -1 means none."""
    if criterion not in get_args(Criterion):
        raise LayoutError(f"criterion must be {' or '.join(get_args(Criterion))}, not {criterion!r}")
    return -1.0 if criterion == "skip" else max(0.1, 0.25 - 0.2 * problem.observed_share)


def checked_cells(problem: Problem, cells: int | None) -> int:
    """Return the number of leaves in a block; the default falls with the share of synthetic queries."""
    if cells is None:
        return round(6 + 4 * problem.observed_share)
    if not isinstance(cells, int) or isinstance(cells, bool) or cells < 1:
        raise LayoutError(f"cells must be a whole number of at least 1, not {cells!r}")
    return cells


def cells_by_trial(problem: Problem, fit: Callable[[Problem, int], Layout]) -> int | None:
    """Return 1 if held-out queries read clearly less with single leaves as blocks; else None, the default.

    Blocks of several small leaves fit the training queries more closely, sometimes at the cost of other queries.
    """
    trial = problem.trial() if problem.trial else None
    if trial is None:
        return None
    single, joined = (trial.reads(fit(trial.problem, n)) for n in (1, checked_cells(trial.problem, None)))
    return 1 if single < (1 - CLEARLY_LESS) * joined else None


def greedy(problem: Problem, least: int, eps: float, by_cells: bool, shared: float = 0.0) -> TreeLayout:
    """Grow a tree in which both sides of each cut have `least` sample rows, or one of them at most `shared`.

    With eps >= 0 a gain is divided by eps plus the split's entropy. With `by_cells` the leaves are joined later, so a
    node is cut even if no query gains yet.
    """
    clauses, rule = problem.clauses.arrays, CutRule(least, shared, eps)
    nodes: list[list[int]] = []
    leaves = 0
    todo = [(OpenNode.root(problem), NO_PARENT, 0)]
    while todo:
        node, parent, side = todo.pop()
        best = NO_CUT
        if node.rows >= (least + 1 if shared else 2 * least):
            sizes = count(node.bits)
            short = shortened(node.queries, clauses, node.some, node.other)
            every = np.arange(len(node.queries))
            best = _best(node, sizes, every, short, rule, False)
            if best == NO_CUT and by_cells:
                best = _best(node, sizes, node.queries, clauses, rule, True)
        if best == NO_CUT:
            child, leaves = ~leaves, leaves + 1
        else:
            child = len(nodes)
            nodes.append([int(node.cuts[best]), 0, 0])
            left, right = node.divided(best, clauses, not by_cells)
            todo += [(right, child, 2), (left, child, 1)]
        if parent != NO_PARENT:
            nodes[parent][side] = child
    return tree_of(problem, nodes)


def _best(node: OpenNode, *options: Any) -> int:
    """Return the first of the cuts with the largest gain; a long search runs on all cores."""
    bits = node.bits

    def best_of(cuts: slice) -> tuple[int, float]:
        arguments: Any = (node, *options, cuts)
        cut_and_gain: tuple[int, float] = best_cut(*arguments)
        return cut_and_gain

    is_short = bits.size * len(bits) < MAX_WORDS_ON_ONE_CORE
    pairs = [best_of(slice(0, len(bits)))] if is_short else parallel_map_slices(best_of, len(bits))
    return max(pairs, key=lambda pair: pair[1])[0]


def tree_of(problem: Problem, nodes: Sequence[Sequence[int]]) -> TreeLayout:
    """Return the layout of nodes (cut, left, right), where a cut is a number in the problem's list of cuts."""
    used = sorted({n[0] for n in nodes})
    place = {cut: i for i, cut in enumerate(used)}
    renumbered: tuple[Node, ...] = tuple((place[c], a, b) for c, a, b in nodes)
    return TreeLayout(tuple(problem.cuts[c] for c in used), renumbered)


class OpenNode(NamedTuple):
    """A node that may still be cut.

    `bits` are the packed outcomes of the `cuts` that divide its rows; `queries` might skip a part of the rows. `some`
    and `other` are facts about all cuts: TRUE on some row; not TRUE on some row.
    """

    bits: Words
    rows: int
    cuts: Ints
    some: Bools
    other: Bools
    queries: Ints
    used: Bools  # whether each cut occurs in one of these queries
    never_used: Bools  # whether it occurs in no query at the root, like cuts where values begin: it always stays

    @staticmethod
    def root(problem: Problem) -> OpenNode:
        truth = problem.truth
        some, other = truth.counts > 0, truth.counts < truth.rows
        cuts = np.flatnonzero(some & other)
        every = np.arange(len(problem.clauses.needs))
        queries, used = open_queries(every, problem.clauses.arrays, some, other)
        return OpenNode(truth.words[cuts], truth.rows, cuts, some, other, queries, used, ~used)

    def divided(self, best: int, clauses: ClauseArrays, every: bool) -> tuple[OpenNode, OpenNode]:
        """Return the two sides of a cut; with `every` they also keep the cuts of queries that are no longer open."""
        sides = self.some.copy(), self.other.copy(), self.some.copy(), self.other.copy()
        fill_facts(self, best, np.ones(len(self.some), bool), sides)
        return self.divided_with(sides, best, clauses, every)

    def divided_with(
        self, sides: Sequence[Bools], best: int, clauses: ClauseArrays, every: bool
    ) -> tuple[OpenNode, OpenNode]:
        """Return the two sides of a cut with these facts: `some` and `other` of the left, then of the right side."""
        goes_left = np.unpackbits(self.bits[best].view(np.uint8), count=self.rows, bitorder="little") > 0

        def side(rows: Ints, some: Bools, other: Bools) -> OpenNode:
            queries, used = open_queries(self.queries, clauses, some, other)
            dividing = np.flatnonzero((some & other & (used | self.never_used | every))[self.cuts])
            bits = select_rows(self.bits[dividing], rows)
            return OpenNode(bits, len(rows), self.cuts[dividing], some, other, queries, used, self.never_used)

        left_some, left_other, right_some, right_other = sides
        on_left, on_right = np.flatnonzero(goes_left), np.flatnonzero(~goes_left)
        return side(on_left, left_some, left_other), side(on_right, right_some, right_other)
