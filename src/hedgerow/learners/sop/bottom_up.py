"""Bottom-up row grouping (Sun et al., 2014): rows with equal features, joined pair by pair until they fill blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.learners.sop.groups import Cost, RowGroups


@dataclass(frozen=True)
class BottomUp:
    """A learner that groups rows by their features; for the parameters see `RowGroups` in `learners/sop/groups.py`.

    `BottomUp(cost="features")` is the paper's algorithm; with `tuned=True` it is the paper's BU+.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    features: int = 15
    threshold: float = 0.001
    tuned: bool = False
    cost: Cost = "queries"

    def fit(self, problem: Problem) -> GroupLayout:
        groups = RowGroups(self.features, self.threshold, self.tuned, self.cost)
        return groups.fit(problem, groups.chosen(problem), problem.block_rows)
