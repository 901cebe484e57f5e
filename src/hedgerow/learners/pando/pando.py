"""Pando (Sudhir et al., VLDB 2023): several trees that are grown together, and blocks made of their common cells.

In a single tree, two conditions that mostly hold on the same rows disturb each other: once rows are divided by one
condition, too few rows remain on which the other differs. Here each has a tree of its own. Rows with the same leaf in
every tree are a cell, and cells are joined into blocks. So the few rows on which the conditions disagree get blocks of
their own.

In the paper, the trees are the index of the blocks. Our block index contains more: the values of every column, and the
outcomes of conditions. So the trees are used to make the blocks, and then dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.merge import Cells, merge
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import Criterion, cells_by_trial, checked_cells, checked_eps
from hedgerow.core.workload.query_clauses import Clauses, Lists
from hedgerow.learners.pando.forest import Nodes, forest, product

MOST_CELLS, CELLS_PER_BLOCK = 10_000, 12  # the paper's limit; our limit: more cells make worse blocks
MOST_TREES, LEAST_GAIN = 4, 0.01  # for k="auto": the most trees; the share of reads that a further tree must save
PATIENCE = 2  # for k="auto": stop after this many further trees in a row without a gain
Cost = Choice["statistics", "trees"]


@dataclass(frozen=True)
class Pando:
    """A learner that grows k trees of cuts together, and joins the rows with the same leaves into blocks.

    `k`: the number of trees. "auto" adds trees until the held-out queries read no less; with recurrence 1, until the
    training queries read no less. If too few queries can be held out, it is one tree.

    `criterion`: as in `QdTree`. `cells`: the mean number of cells in a block; leaves are at most that much
    smaller than a block. With 1 a leaf has as many rows as a block, and the only limit is the paper's 10,000 cells.

    `cost`: how blocks are chosen. "statistics": by the rows that queries read with our block index. "trees", as in the
    paper: by the rows that they read if they open each block with a row of a read leaf in every tree.

    `Pando(2, "skip", cells=1, cost="trees")` is the paper's algorithm, `Pando(1, "skip", cells=1)` is MTO's.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    k: int | Choice["auto"] = "auto"
    criterion: Criterion = "gain_ratio"
    cells: int | None = None
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

    def _blocks(self, problem: Problem, k: int) -> tuple[TreeLayout, float]:
        """Return the layout with k trees, and the mean share of the rows that queries read in it."""
        eps, cells = checked_eps(problem, self.criterion), checked_cells(problem, self.cells)
        least = max(1, problem.sample_block_rows // cells)
        blocks = len(problem.sample) // problem.sample_block_rows
        most_cells = MOST_CELLS if cells == 1 else min(MOST_CELLS, CELLS_PER_BLOCK * blocks)
        trees = forest(problem, k, least, eps, cells > 1, most_cells)
        tree = product(problem, trees)
        leaves = problem.cells(tree)
        all_reads = float(problem.clauses.weights.sum()) * int(leaves.rows.sum()) or 1.0
        if cells == k == 1:
            return tree, 1 - leaves.skipped(np.arange(tree.blocks), problem.clauses) / all_reads
        if self.cost == "trees":
            block = merge(*_read_by_trees(problem, trees, tree, leaves.rows), problem.block_rows)
        else:
            block = merge(leaves, problem.clauses, problem.block_rows)
        return tree.relabelled(block.tolist()), 1 - leaves.skipped(block, problem.clauses) / all_reads


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
    first_row = np.unique(cells.assign(rows), return_index=True)[1]
    read = []
    for tree in trees:
        layout = product(problem, [tree])
        leaves = replace(problem, counter=None).cells(layout)
        read.append(clauses.may(leaves.some, leaves.other)[layout.assign(rows)[first_row]])
    queries = len(clauses.weights)
    needs = [[t * queries + q for t in range(len(trees))] for q in range(queries)]
    some = np.concatenate(read, axis=1)
    by_tree = Clauses(Lists.of([[2 * i] for i in range(some.shape[1])]), Lists.of(needs), clauses.weights)
    return Cells(sizes, some, np.zeros_like(some)), by_tree
