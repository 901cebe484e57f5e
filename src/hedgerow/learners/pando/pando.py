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
from functools import cache
from typing import ClassVar, NamedTuple, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.block_counter import BlockCounter, RowCounter
from hedgerow.core.learning.cells.merge import Cells, merge, merge_cheapest
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.trees.greedy import Criterion, cells_by_trial, checked_cells, checked_eps
from hedgerow.core.workload.query_clauses import Clauses, Lists
from hedgerow.learners.pando.forest import BY_ROWS, forest, layout_of, product
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
    which the table has fewer than 10,000 cells; with `cost="trees"` leaves are never smaller.

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
        return self._grown(problem, self.k).trees

    def _grown(self, problem: Problem, k: int) -> _Grown:
        by_trees, eps = self.cost == "trees", checked_eps(problem, self.criterion)
        promised = promised_facts(problem.cuts) if by_trees else BY_ROWS
        cells = 1 if self.cells == "tuned" else checked_cells(problem, self.cells)
        blocks = len(problem.sample) // problem.sample_block_rows
        most_cells = MOST_CELLS if cells == 1 else min(MOST_CELLS, CELLS_PER_BLOCK * blocks)
        counter = problem.table_counter if by_trees else RowCounter(problem.sample.rows)

        def grown(least: int) -> list[TreeLayout]:
            nodes = forest(problem, k, least, eps, cells > 1, most_cells, promised)
            return [layout_of(problem, tree) for tree in nodes]

        least = 1 if self.cells == "tuned" else max(1, problem.sample_block_rows // cells)
        if self.cells == "tuned" or by_trees:
            return _with_few_tuples(grown, least, problem.sample, counter)
        return _Grown.counted(grown(least), counter)

    def _blocks(self, problem: Problem, k: int) -> tuple[TreeLayout, float]:
        """Return the layout of the trees' cells in blocks, and the mean share of the rows that queries read in it."""
        grown = self._grown(problem, k)
        tree = product(problem, grown.trees, grown.tuples)
        if self.cost == "trees":
            cells, clauses, join = *_read_by_trees(problem, grown), merge_cheapest
        else:
            cells, clauses, join = problem.cells(tree), problem.clauses, merge
        single = self.cells == k == 1
        block = np.arange(tree.blocks) if single else join(cells, clauses, problem.block_rows)
        all_reads = float(clauses.weights.sum()) * int(cells.rows.sum()) or 1.0
        share = 1 - cells.skipped(block, clauses) / all_reads
        return tree if single else tree.relabelled(block.tolist()), share


class _Grown(NamedTuple):
    """Trees, the tuples of leaves that rows have, and the number of rows of each tuple."""

    trees: list[TreeLayout]
    tuples: Ints
    rows: Ints

    @staticmethod
    def counted(trees: list[TreeLayout], counter: BlockCounter) -> _Grown:
        return _Grown(trees, *counter.count_together(trees))


def leaf_sizes(least: int, rows: int) -> list[int]:
    """Return sizes of leaves in sample rows, each about a fifth larger; with the last there is one leaf."""
    sizes: list[int] = np.unique(np.geomspace(least, max(least, rows), LEAF_SIZES).astype(np.int64)).tolist()
    return sizes


def _with_few_tuples(
    grown: Callable[[int], list[TreeLayout]], least: int, sample: Sample, counter: BlockCounter
) -> _Grown:
    """Return the trees with the smallest leaves by which rows have fewer than `MOST_CELLS` tuples, by bisection.

    Tuples mostly become more as leaves become smaller. If not, a smaller size may fit too, but not the next one. The
    counted rows have nearly all tuples of the sample's rows, so the sample rules out sizes first.
    """
    sizes, grown = leaf_sizes(least, len(sample)), cache(grown)
    counted = cache(lambda size: _Grown.counted(grown(size), counter))
    of_sample = RowCounter(sample.rows)

    def fits_sample(size: int) -> bool:
        return len(of_sample.count_together(grown(size))[0].T) < MOST_CELLS

    def fits(size: int) -> bool:
        return len(counted(size).tuples.T) < MOST_CELLS

    def first(at: int, fits: Callable[[int], bool]) -> int:
        last = len(sizes) - 1
        return at if fits(sizes[at]) else bisect_left(sizes, True, lo=min(at + 1, last), hi=last, key=fits)

    return counted(sizes[first(first(0, fits_sample), fits)])


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


def _read_by_trees(problem: Problem, grown: _Grown) -> tuple[Cells, Clauses]:
    """Return the paper's cost as clauses: a query reads a block with, in each tree, a row in a leaf that it reads."""
    clauses, promised = problem.clauses, promised_facts(problem.cuts)
    read = [clauses.may(*facts_of_leaves(tree, problem.cuts, promised)) for tree in grown.trees]
    queries = len(clauses.weights)
    needs = [[t * queries + q for t in range(len(read))] for q in range(queries)]
    some = np.concatenate([may[leaves] for may, leaves in zip(read, grown.tuples, strict=True)], axis=1)
    by_tree = Clauses(Lists.of([[2 * i] for i in range(some.shape[1])]), Lists.of(needs), clauses.weights)
    return Cells(grown.rows, some, np.zeros_like(some)), by_tree
