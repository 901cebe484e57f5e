"""Z-order: columns take turns in giving a bit of the key, equally many each."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.curve import CurveLayout
from hedgerow.core.curves import axis_of, bits_each, filtered_terms, named_terms, order
from hedgerow.core.problem import Problem


@dataclass(frozen=True)
class ZOrder:
    """`columns`: which to interleave; by default the `most` that queries filter on most often."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        terms = named_terms(problem, self.columns) or list(filtered_terms(problem))[: self.most]
        if not terms:
            return CurveLayout((), (), ())
        axes = [axis_of(problem, term, bits_each(problem, len(terms))) for term in terms]
        turns = range(max(axis.bits for axis in axes))
        return order(problem, axes, [i for turn in turns for i, axis in enumerate(axes) if turn < axis.bits])
