"""Hilbert order: like Z-order, but neighbours on the curve are always neighbours in space."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curve_order import curve_layout
from hedgerow.core.learning.problem import Problem
from hedgerow.learners.curves.zorder import axes_of


@dataclass(frozen=True)
class Hilbert:
    """A learner that orders rows along a Hilbert curve through `columns`.

    By default these are the `most` columns most often filtered on.
    """

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        axes = axes_of(problem, self.columns, self.most)
        bits = max((axis.bits for axis in axes), default=0)
        return curve_layout(problem, axes, list(range(len(axes))) * bits, "hilbert")
