"""Pando (Sudhir et al., VLDB 2023): several trees that are grown together, and blocks made of their common cells.

In a single tree, two conditions that mostly hold on the same rows disturb each other: once rows are divided by one
condition, too few rows remain on which the other differs. Here each has a tree of its own. Rows with the same leaf in
every tree are a cell, and cells are joined into blocks. So the few rows on which the conditions disagree get blocks of
their own.

In the paper, the trees are the index of the blocks. Our block index contains more: the values of every column, and the
outcomes of conditions. So the trees are used to make the blocks, and then dropped. With `cost="trees"` they are grown
and joined as in the paper, for queries that read a block if every tree names it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.merge import Cells, merge, merge_cheapest
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import Criterion, cells_by_trial, checked_cells, checked_eps
from hedgerow.core.workload.query_clauses import Clauses, Lists
from hedgerow.learners.pando.forest import BY_ROWS, Nodes, forest, product
from hedgerow.learners.pando.path_facts import facts_of_leaves, promised_facts

MOST_CELLS, CELLS_PER_BLOCK = 10_000, 12  # the paper's limit; our limit: more cells make worse blocks
LEAF_SIZES = 50  # the number of leaf sizes among which the paper's threshold is chosen
MOST_TREES, LEAST_GAIN = 4, 0.01  # for k="auto": the most trees; the share of reads that a further tree must save
PATIENCE = 2  # for k="auto": stop after this many further trees in a row without a gain
Cost = Choice["statistics", "trees"]


@dataclass(frozen=True)
class Pando:
    """A learner that grows k trees of cuts together, and joins the rows with the same leaves into blocks.

    `k`: the number of trees. "auto" adds trees until the held-out queries read no less; with recurrence 1, until the
    training queries read no less. If too few queries can be held out, it is one tree.

    `criterion`: as in `QdTree`. `cells`: the mean number of cells in a block; leaves are at most that much
    smaller than a block. With 1 a leaf has as many rows as a block. "tuned", as in the paper: the smallest leaves with
    which the table has fewer than 10,000 cells.

    `cost`: how reads are estimated. "statistics": by our block index. "trees", as in the paper: a query skips a leaf
    that the cuts above it exclude, and opens each block with a row of a read leaf in every tree.

    `Pando(2, "skip", cells="tuned", cost="trees")` is the paper's algorithm, `Pando(1, "skip", cells=1, cost="trees")`
    is MTO's.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    k: int | Choice["auto"] = "auto"
    criterion: Criterion = "gain_ratio"
    cells: int | Choice["tuned"] | None = None
    cost: Cost = "statistics"

    def fit(self, problem: Problem) -> TreeLayout:
        if self.k != "auto" and (not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1):
            raise LayoutError(f"k must be a number of trees or 'auto', not {self.k!r}")
        if self.cost not in get_args(Cost):
            raise LayoutError(f"cost must be {' or '.join(get_args(Cost))}, not {self.cost!r}")
        if not problem.cuts:
            return TreeLayout((), ())
        if self.cells is None and cells_by_trial(problem, lambda part, n: replace(self, k=1, cells=n).fit(part)):
            return replace(self, cells=1).fit(problem)
        if self.k != "auto":
            return self._blocks(problem, self.k)[0]
        if problem.observed_share < 1:
            trial = problem.trial() if problem.trial else None
            k = 1 if trial is None else _fewest(lambda k: trial.reads(self._blocks(trial.problem, k)[0]))
            return self._blocks(problem, k)[0]
        by_trees: dict[int, tuple[TreeLayout, float]] = {}
        return by_trees[_fewest(lambda k: by_trees.setdefault(k, self._blocks(problem, k))[1])][0]

    def trees(self, problem: Problem) -> list[TreeLayout]:
        """Return the trees from whose cells `fit` makes the blocks, for a given k. Their leaves are not blocks."""
        if self.k == "auto":
            raise LayoutError("k must be a number of trees")
        return [product(problem, [tree]) for tree in self._grown(problem, self.k)]

    def _blocks(self, problem: Problem, k: int) -> tuple[TreeLayout, float]:
        return self._joined(problem, self._grown(problem, k))

    def _grown(self, problem: Problem, k: int) -> list[Nodes]:
        eps, promised = checked_eps(problem, self.criterion), self._promised(problem)
        if self.cells == "tuned":
            return _tuned(lambda least: forest(problem, k, least, eps, False, MOST_CELLS, promised), problem)
        cells = checked_cells(problem, self.cells)
        blocks = len(problem.sample) // problem.sample_block_rows
        most_cells = MOST_CELLS if cells == 1 else min(MOST_CELLS, CELLS_PER_BLOCK * blocks)
        return forest(problem, k, max(1, problem.sample_block_rows // cells), eps, cells > 1, most_cells, promised)

    def _promised(self, problem: Problem) -> Bools:
        return promised_facts(problem.cuts) if self.cost == "trees" else BY_ROWS

    def _joined(self, problem: Problem, trees: list[Nodes]) -> tuple[TreeLayout, float]:
        """Return the layout of the trees' cells in blocks, and the mean share of the rows that queries read in it."""
        tree = product(problem, trees)
        leaves = problem.cells(tree)
        all_reads = float(problem.clauses.weights.sum()) * int(leaves.rows.sum()) or 1.0
        if self.cells == len(trees) == 1:
            return tree, 1 - leaves.skipped(np.arange(tree.blocks), problem.clauses) / all_reads
        if self.cost == "trees":
            block = merge_cheapest(*_read_by_trees(problem, trees, tree, leaves.rows), problem.block_rows)
        else:
            block = merge(leaves, problem.clauses, problem.block_rows)
        return tree.relabelled(block.tolist()), 1 - leaves.skipped(block, problem.clauses) / all_reads


def leaf_sizes(rows: int) -> list[int]:
    """Return sizes of leaves in sample rows, each about a fifth larger; with the last there is one leaf."""
    sizes: list[int] = np.unique(np.geomspace(1, max(1, rows), LEAF_SIZES).astype(np.int64)).tolist()
    return sizes


def _tuned(grown: Callable[[int], list[Nodes]], problem: Problem) -> list[Nodes]:
    """Return the trees with the smallest leaves whose product has fewer than `MOST_CELLS` leaves, by bisection.

    Cells mostly become more as leaves become smaller. If not, a smaller size may fit too, but not the next one.
    """
    sizes = leaf_sizes(len(problem.sample))

    def fits(size: int) -> bool:
        return product(problem, grown(size)).blocks < MOST_CELLS

    return grown(sizes[bisect_left(sizes, True, hi=len(sizes) - 1, key=fits)])


def _fewest(reads: Callable[[int], float]) -> int:
    """Return the number of trees after which further trees save little; `reads(k)` is the share of rows read with k."""
    best, best_share = 1, reads(1)
    for k in range(2, MOST_TREES + 1):
        if k - best > PATIENCE:
            break
        share = reads(k)
        if share < (1 - LEAST_GAIN) * best_share:
            best, best_share = k, share
    return best


def _read_by_trees(problem: Problem, trees: list[Nodes], cells: TreeLayout, sizes: Ints) -> tuple[Cells, Clauses]:
    """Return the paper's cost as clauses: a query reads a block with, in each tree, a row in a leaf that it reads."""
    rows, clauses = problem.sample.rows, problem.clauses
    promised = promised_facts(problem.cuts)
    of_cell, first_row = np.unique(cells.assign(rows), return_index=True)
    read = []
    for tree in trees:
        layout = product(problem, [tree])
        read.append(clauses.may(*facts_of_leaves(layout, problem.cuts, promised))[layout.assign(rows)[first_row]])
    queries = len(clauses.weights)
    needs = [[t * queries + q for t in range(len(trees))] for q in range(queries)]
    some = np.ones((len(sizes), len(trees) * queries), bool)
    some[of_cell] = np.concatenate(read, axis=1)
    by_tree = Clauses(Lists.of([[2 * i] for i in range(some.shape[1])]), Lists.of(needs), clauses.weights)
    return Cells(sizes, some, np.zeros_like(some)), by_tree
