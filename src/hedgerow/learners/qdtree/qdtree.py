"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): cut a node where queries then skip the most rows.

The defaults differ from the paper: a gain is divided by the entropy of the split, leaves are small cells, and cells are
joined into blocks by statistics of all rows. `QdTree("skip", cells=1)` is the paper's algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.merge import merge
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import Criterion, cells_by_trial, checked_cells, checked_eps, greedy
from hedgerow.learners.qdtree.overlap import overlapped

MAX_COPIED_SHARE = 0.5  # of a block's rows: the copies of a larger leaf would cost too much


@dataclass(frozen=True)
class QdTree:
    """A learner of a tree of cuts, grown greedily from the root.

    `criterion`: choose the cut by the rows that queries skip ("skip", as in the paper), or by these divided by the
    entropy of the split ("gain_ratio"). A small number is added to the entropy, so that tiny slices are not preferred.
    It grows with the share of synthetic queries.

    `cells`: the number of leaves that make up a block. With 1 a leaf is a block, as in the paper. Otherwise leaves are
    that much smaller than a block, and are joined where it costs least. The default is 7, and up to 10 if fewer of the
    queries are synthetic.

    `overlap`: one side of a cut may have half a block or less; such leaves are copied to several blocks (6.2). Then all
    other leaves are blocks, and `cells` is ignored.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    criterion: Criterion = "gain_ratio"
    cells: int | None = None
    overlap: bool = False

    def fit(self, problem: Problem) -> TreeLayout | OverlapLayout:
        eps, cells = checked_eps(problem, self.criterion), checked_cells(problem, self.cells)
        if not problem.cuts:
            return TreeLayout((), ())
        if self.cells is None and not self.overlap:
            cells = cells_by_trial(problem, lambda part, n: replace(self, cells=n).fit(part)) or cells
        if self.overlap:
            least = problem.sample_block_rows
            return overlapped(greedy(problem, least, eps, False, MAX_COPIED_SHARE * least), problem)
        tree = greedy(problem, max(1, problem.sample_block_rows // cells), eps, cells > 1)
        if cells == 1:
            return tree
        return tree.relabelled(merge(problem.cells(tree), problem.clauses, problem.block_rows).tolist())
