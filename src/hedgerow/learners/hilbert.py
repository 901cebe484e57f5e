"""Hilbert order: like Z-order, but neighbours on the curve are always neighbours in space."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curves.order import along_hilbert
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class Hilbert:
    """Orders rows along a Hilbert curve through `columns`; by default the `most` columns most often filtered on."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        return along_hilbert(problem, self.columns, self.most)
