"""Z-order: the columns contribute bits of the key in turn, equally many each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.learning.curve_order import (
    axis_of,
    bits_each,
    curve_layout,
    filtered_terms,
    named_terms,
    round_robin_pattern,
)
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """A learner that interleaves the bits of `columns`; by default, of the `most` columns most often filtered on."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        axes = axes_of(problem, self.columns, self.most)
        return curve_layout(problem, axes, round_robin_pattern(axes))


def axes_of(problem: Problem, names: Sequence[str], most: int) -> list[Axis]:
    """Return an axis for each named term; without names, for the `most` terms most often filtered on."""
    chosen = named_terms(problem, names) or list(filtered_terms(problem))[:most]
    return [axis_of(problem, term, bits_each(problem, len(chosen))) for term in chosen]
