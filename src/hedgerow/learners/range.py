"""Rows sorted by one column, or by several from major to minor, and cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curves.order import ranged
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class Range:
    """Sorts by `columns`; by default by the column whose conditions let the fewest rows through on average."""

    columns: tuple[str, ...] = ()

    def fit(self, problem: Problem) -> CurveLayout:
        return ranged(problem, self.columns)
