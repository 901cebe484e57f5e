"""Bottom-up row grouping (Sun et al., 2014): rows with equal features form a group; groups are joined into blocks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.feature_groups import GroupLayout, text_of
from hedgerow.core.learning.cells.merge import merge
from hedgerow.core.learning.problem import Problem
from hedgerow.learners.sop.clustering import grouped_rows
from hedgerow.learners.sop.features import Frequent, frequent

Cost = Choice["queries", "features", "sop"]
MAX_TUNED_SHARE = 0.1  # of the rows: with `tuned`, a feature that more rows have is ignored (qd-tree, 7.5)


@dataclass(frozen=True)
class BottomUp:
    """A learner that groups rows by frequent features of the workload, and joins the groups into blocks.

    `features`: the maximum number of features.
    `threshold`: the minimum benefit of each feature. With cost "queries" it is the share of all rows that the feature
    lets queries skip; otherwise it is the share of the queries that imply the feature. The benefit of earlier features
    does not count again.
    `tuned`: use only features that at most a tenth of the rows have.
    `cost`: the price of joining two groups. "queries": the extra rows that queries read. "features" and "sop": the
    rows that lack a feature of the other group, times the feature's weight. This is the weight of the queries that
    imply the feature ("features"), or that contain it as a condition ("sop").

    `BottomUp(cost="features")` is the paper's algorithm; with `tuned=True` it is the paper's BU+.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    features: int = 15
    threshold: float = 0.001
    tuned: bool = False
    cost: Cost = "queries"

    def __post_init__(self) -> None:
        if not isinstance(self.features, int) or isinstance(self.features, bool) or self.features < 1:
            raise LayoutError(f"features must be a whole number of at least 1, not {self.features!r}")
        if not isinstance(self.threshold, int | float) or not 0 <= self.threshold <= 1:
            raise LayoutError(f"threshold must be a share of the queries, from 0 to 1, not {self.threshold!r}")
        if self.cost not in get_args(Cost):
            raise LayoutError(f"cost must be one of {', '.join(get_args(Cost))}, not {self.cost!r}")

    def chosen(self, problem: Problem, among: Collection[int] | None = None, published: bool = False) -> Frequent:
        """Choose features from these cuts, or from all; with `published`, by the queries they serve, for every cost."""
        cuts = range(len(problem.cuts)) if among is None else among
        widest = MAX_TUNED_SHARE if self.tuned else 1.0
        return frequent(
            problem, self.features, self.threshold, widest, cuts, skip=self.cost == "queries" and not published
        )

    def fit(self, problem: Problem) -> GroupLayout:
        return self.grouped(problem, self.chosen(problem))

    def grouped(self, problem: Problem, chosen: Frequent) -> GroupLayout:
        """Group the rows by the chosen features, and join the groups into blocks."""
        if not chosen.cuts:
            return GroupLayout((), {})
        holds = problem.truth[chosen.cuts].T
        vectors = holds[np.unique(np.packbits(holds, axis=1), axis=0, return_index=True)[1]]
        predicates = tuple(problem.cuts[c] for c in chosen.cuts)
        unjoined = GroupLayout(predicates, {text_of(v): i for i, v in enumerate(vectors)})
        cells = problem.cells(unjoined)
        if self.cost == "queries":
            blocks = merge(cells, problem.clauses, problem.block_rows)
        else:
            weights = chosen.serves if self.cost == "features" else chosen.named
            blocks = grouped_rows(vectors, cells.rows, weights, problem.block_rows)
        return GroupLayout(predicates, {text_of(v): int(b) for v, b in zip(vectors, blocks, strict=True)})
