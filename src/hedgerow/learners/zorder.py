"""Z-order: the columns contribute bits of the key in turn, equally many each."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curves.order import woven
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """Interleaves the bits of `columns`; by default the `most` columns most often filtered on."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        return woven(problem, self.columns, self.most)
