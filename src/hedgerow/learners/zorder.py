"""Z-order: columns take turns in giving a bit of the key, equally many each."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.curve import CurveLayout
from hedgerow.core.curves import axes_of, order
from hedgerow.core.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """`columns`: which to interleave; by default the `most` that queries filter on most often."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        axes = axes_of(problem, self.columns, self.most)
        turns = range(max((axis.bits for axis in axes), default=0))
        return order(problem, axes, [i for turn in turns for i, axis in enumerate(axes) if turn < axis.bits])
