"""Hilbert order: like Z-order, but neighbours on the curve are always neighbours in space."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.curve import CurveLayout
from hedgerow.core.curves import axis_of, bits_each, filtered_terms, named_terms, order
from hedgerow.core.problem import Problem


@dataclass(frozen=True)
class Hilbert:
    """`columns`: which to curve through; by default the `most` that queries filter on most often."""

    columns: tuple[str, ...] = ()
    most: int = 3

    def fit(self, problem: Problem) -> CurveLayout:
        terms = named_terms(problem, self.columns) or list(filtered_terms(problem))[: self.most]
        if not terms:
            return CurveLayout((), (), ())
        axes = [axis_of(problem, term, bits_each(problem, len(terms))) for term in terms]
        bits = max(axis.bits for axis in axes)
        return order(problem, axes, list(range(len(axes))) * bits, "hilbert")
