"""Z-order: columns take turns in giving a bit of the key, equally many each."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curves.order import woven
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """`columns`: which to interleave; by default the `most` that queries filter on most often."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        return woven(problem, self.columns, self.most)
