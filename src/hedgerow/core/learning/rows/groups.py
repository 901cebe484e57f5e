"""Frequent features of the workload, and the rows with equal features joined into blocks: a group layout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal as Choice
from typing import get_args

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.feature_groups import GroupLayout, text_of
from hedgerow.core.learning.cells.merge import merge
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.rows.clustering import grouped_rows
from hedgerow.core.learning.rows.features import Frequent, frequent

Cost = Choice["queries", "features", "sop"]
SELECTIVE = 0.1  # of the rows: a feature of more is ignored where they are tuned (qd-tree, 7.5)


@dataclass(frozen=True)
class RowGroups:
    """How rows are grouped by their features.

    `features`: at most so many; `threshold`: the share of the queries that each has to serve; `tuned`: only those that
    at most a tenth of the rows have. `cost` of joining two groups: what the queries read in vain, by all that is known
    of their rows ("queries"), or what features give up, each weighed by the queries that it subsumes ("features") or
    by those that name it ("sop").
    """

    features: int
    threshold: float
    tuned: bool
    cost: Cost

    def __post_init__(self) -> None:
        if not isinstance(self.features, int) or isinstance(self.features, bool) or self.features < 1:
            raise LayoutError(f"rows are grouped by one feature or more, not by features={self.features!r}")
        if not isinstance(self.threshold, int | float) or not 0 <= self.threshold <= 1:
            raise LayoutError(f"the threshold of a feature is a share of the queries, 0 to 1, not {self.threshold!r}")
        if self.cost not in get_args(Cost):
            raise LayoutError(f"the cost of joining groups is {', '.join(get_args(Cost))}, not {self.cost!r}")

    def chosen(self, problem: Problem, among: Collection[int] | None = None, published: bool = False) -> Frequent:
        """The features, of these cuts or of all; `published`: by how many queries they serve, whatever the cost."""
        cuts = range(len(problem.cuts)) if among is None else among
        widest = SELECTIVE if self.tuned else 1.0
        return frequent(
            problem, self.features, self.threshold, widest, cuts, skip=self.cost == "queries" and not published
        )

    def fit(self, problem: Problem, found: Frequent, least: int) -> GroupLayout:
        """Blocks of at least `least` rows."""
        if not found.cuts:
            return GroupLayout((), {})
        holds = problem.truth[found.cuts].T
        vectors = holds[np.unique(np.packbits(holds, axis=1), axis=0, return_index=True)[1]]
        predicates = tuple(problem.cuts[c] for c in found.cuts)
        alone = GroupLayout(predicates, {text_of(v): i for i, v in enumerate(vectors)})
        cells = problem.cells(alone)
        if self.cost == "queries":
            blocks = merge(cells, problem.clauses, least)
        else:
            weights = found.serves if self.cost == "features" else found.named
            blocks = grouped_rows(vectors, cells.rows, weights, least)
        return GroupLayout(predicates, {text_of(v): int(b) for v, b in zip(vectors, blocks, strict=True)})
