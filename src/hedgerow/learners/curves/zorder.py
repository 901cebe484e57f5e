"""Z-order: the columns contribute bits of the key in turn, equally many each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.core.layouts.curve import Axis, CurveLayout
from hedgerow.core.learning.curve_order import (
    Axes,
    axis_of,
    bits_each,
    check_axes,
    curve_layout,
    filtered_terms,
    named_terms,
    round_robin_pattern,
)
from hedgerow.core.learning.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """A learner that interleaves the bits of `columns`; by default, of the `most` columns most often filtered on.

    `axes`: "ranks" takes the bits of a value's rank in the sample; "values" those of the value itself, as is published.
    """

    columns: tuple[str, ...] = ()
    most: int = 3
    axes: Axes = "ranks"

    def fit(self, problem: Problem) -> CurveLayout:
        check_axes(self.axes)
        axes = axes_of(problem, self.columns, self.most, self.axes)
        return curve_layout(problem, axes, round_robin_pattern(axes))


def axes_of(problem: Problem, names: Sequence[str], most: int, axes: Axes = "ranks") -> list[Axis]:
    """Return an axis for each named term; without names, for the `most` terms most often filtered on."""
    chosen = named_terms(problem, names) or list(filtered_terms(problem))[:most]
    return [axis_of(problem, term, bits_each(problem, len(chosen)), axes) for term in chosen]
