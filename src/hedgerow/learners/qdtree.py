"""Greedy qd-tree (Yang et al., SIGMOD 2020, Algorithm 1): split a node by the cut that lets most rows be skipped.

By default it departs from the paper: cuts are weighed by the entropy of the split, leaves are small cells, and cells
are joined into blocks by what all rows say of them. `QdTree("skip", cells=1)` is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import cells_of, eps_of, greedy, joined
from hedgerow.core.learning.trees.overlap import overlapped

SMALL = 0.5  # of a block: the most rows of a leaf that is kept in several; of larger ones the copies cost too much
Criterion = Choice["skip", "gain_ratio"]


@dataclass(frozen=True)
class QdTree:
    """`criterion`: how much a cut lets be skipped ("skip", the paper's), or that for each bit of the split's entropy
    ("gain_ratio", with `eps` added to the entropy so that tiny slices are not favoured: by default the more, the less
    of the problem was really asked).

    `cells`: how many leaves a block may be made of. With 1 a leaf is a block, as in the paper; else leaves are that
    much smaller than a block and joined by what the joined blocks cost: by default a sixth, and a tenth where all of
    the problem was really asked, for then there are fewer queries to look at.

    `overlap`: one side of a cut may be half a block or less; such leaves are kept in several blocks (6.2). The other
    leaves are blocks then, whatever `cells` says.
    """

    criterion: Criterion = "gain_ratio"
    eps: float | None = None
    cells: int | None = None
    overlap: bool = False

    def fit(self, problem: Problem) -> TreeLayout | OverlapLayout:
        if self.criterion not in ("skip", "gain_ratio"):
            raise LayoutError(f"a qd-tree's criterion is skip or gain_ratio, not {self.criterion!r}")
        if self.eps is not None and (not isinstance(self.eps, int | float) or not 0 <= self.eps < np.inf):
            raise LayoutError(f"a qd-tree's eps is a number from 0 on, not {self.eps!r}")
        cells = cells_of(problem) if self.cells is None else self.cells
        if not isinstance(cells, int) or isinstance(cells, bool) or cells < 1:
            raise LayoutError(f"a block has at least one cell, a whole number, not cells={self.cells!r}")
        if not problem.cuts:
            return TreeLayout((), ())
        eps = -1.0 if self.criterion == "skip" else eps_of(problem) if self.eps is None else self.eps
        if self.overlap:
            least = problem.sample_block_rows
            return overlapped(greedy(problem, least, eps, False, SMALL * least), problem)
        tree = greedy(problem, max(1, problem.sample_block_rows // cells), eps, cells > 1)
        return tree if cells == 1 else joined(problem, tree)
