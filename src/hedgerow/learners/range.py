"""Rows sorted by one column, or by several from major to minor, and cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.curve import CurveLayout
from hedgerow.core.curves import axis_of, bits_each, filtered_terms, named_terms, order, selectivity
from hedgerow.core.problem import Problem


@dataclass(frozen=True)
class Range:
    """`columns`: what to sort by; by default the one whose conditions let the fewest rows through on average."""

    columns: tuple[str, ...] = ()

    def fit(self, problem: Problem) -> CurveLayout:
        terms = named_terms(problem, self.columns)
        if not terms:
            found = filtered_terms(problem)
            terms = sorted(found, key=lambda t: selectivity(problem, t))[:1]
        axes = [axis_of(problem, term, bits_each(problem, len(terms))) for term in terms]
        return order(problem, axes, [i for i, axis in enumerate(axes) for _ in range(axis.bits)])
