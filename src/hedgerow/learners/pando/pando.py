"""Pando (Sudhir et al., VLDB 2023): several trees that are grown together, and blocks made of their common cells.

In one tree two conditions that mostly hold on the same rows get in each other's way: once rows are divided by the one,
there are too few on which only the other differs. Here each has a tree of its own. Rows with one leaf in every tree are
a cell, and cells are joined into blocks, so the few rows on which the conditions disagree get blocks of their own.

The paper keeps the trees as the index of the blocks. Our index knows more: what each block contains of every column,
and on which rows each condition holds. So the trees serve to make the blocks, and are not kept.
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

MOST_CELLS, CELLS_PER_BLOCK = 10_000, 12  # the paper's limit; ours, for then blocks get better than with more cells
MOST_TREES, LEAST_GAIN = 4, 0.01  # of k="auto": a further tree has to save this share of what is read
PATIENCE = 2  # of k="auto": it ends when so many further trees in a row saved nothing
Cost = Choice["statistics", "trees"]


@dataclass(frozen=True)
class Pando:
    """Grows k trees of cuts together, and joins the rows with the same leaves into blocks.

    `k`: the number of trees; "auto" adds trees until the queries held out read no less, or, if only the queries learned
    from count, until these do. If too few queries can be held out it is one tree.

    `criterion` and `eps`: as in `QdTree`. `cells`: the number of cells that a block is made of, on average; leaves are
    at most that much smaller than a block. With 1 a leaf has as many rows as a block, and cells are limited only by the
    paper's 10,000.

    `cost`: how blocks are chosen. "statistics": by what queries read with our index. "trees", as in the paper: by what
    they read if they open a block where each tree has a leaf that they read.

    `Pando(2, "skip", cells=1, cost="trees")` is the paper's algorithm, `Pando(1, "skip", cells=1)` is MTO's.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    k: int | Choice["auto"] = "auto"
    criterion: Criterion = "gain_ratio"
    eps: float | None = None
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
        made: dict[int, tuple[TreeLayout, float]] = {}
        return made[_fewest(lambda k: made.setdefault(k, self._blocks(problem, k))[1])][0]

    def _blocks(self, problem: Problem, k: int) -> tuple[TreeLayout, float]:
        """The layout with k trees, and the mean share of the rows that queries read in it."""
        eps, cells = checked_eps(problem, self.criterion, self.eps), checked_cells(problem, self.cells)
        least = max(1, problem.sample_block_rows // cells)
        blocks = len(problem.sample) // problem.sample_block_rows
        most = MOST_CELLS if cells == 1 else min(MOST_CELLS, CELLS_PER_BLOCK * blocks)
        trees = forest(problem, k, least, eps, cells > 1, most)
        tree = product(problem, trees)
        known = problem.cells(tree)
        every = float(problem.clauses.weights.sum()) * int(known.rows.sum())
        if cells == k == 1:
            return tree, 1 - known.skipped(np.arange(tree.blocks), problem.clauses) / (every or 1.0)
        if self.cost == "trees":
            block = merge(*_read_by_trees(problem, trees, tree, known.rows), problem.block_rows)
        else:
            block = merge(known, problem.clauses, problem.block_rows)
        return tree.relabelled(block.tolist()), 1 - known.skipped(block, problem.clauses) / (every or 1.0)


def _fewest(reads: Callable[[int], float]) -> int:
    """The number of trees to which no further tree adds much, by the share of rows that queries read with k trees."""
    best, least = 1, reads(1)
    for k in range(2, MOST_TREES + 1):
        if k - best > PATIENCE:
            break
        read = reads(k)
        if read < (1 - LEAST_GAIN) * least:
            best, least = k, read
    return best


def _read_by_trees(problem: Problem, trees: list[Nodes], cells: TreeLayout, sizes: Ints) -> tuple[Cells, Clauses]:
    """The paper's cost as clauses: a query reads a block if, in each tree, a row of it is in a leaf that it reads."""
    rows, clauses = problem.sample.rows, problem.clauses
    first_row = np.unique(cells.assign(rows), return_index=True)[1]
    read = []
    for tree in trees:
        alone = product(problem, [tree])
        leaves = replace(problem, counter=None).cells(alone)
        read.append(clauses.may(leaves.some, leaves.other)[alone.assign(rows)[first_row]])
    queries = len(clauses.weights)
    needs = [[t * queries + q for t in range(len(trees))] for q in range(queries)]
    some = np.concatenate(read, axis=1)
    by_tree = Clauses(Lists.of([[2 * i] for i in range(some.shape[1])]), Lists.of(needs), clauses.weights)
    return Cells(sizes, some, np.zeros_like(some)), by_tree
