"""Rows sorted by one column, or by several from major to minor, and cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.learning.curve_order import axis_of, bits_each, curve_layout, filtered_terms, named_terms
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import And, Predicate, Term, conjunction
from hedgerow.core.predicates.normal_form import grouped
from hedgerow.core.predicates.step_functions import Stepwise, stepwise
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.value_codes import NAN_CODE, NULL_CODE


@dataclass(frozen=True)
class Range:
    """A learner that sorts rows by `columns`; by default by the column with the most selective conditions."""

    columns: tuple[str, ...] = ()

    def fit(self, problem: Problem) -> CurveLayout:
        terms = named_terms(problem, self.columns)
        if not terms:
            terms = sorted(filtered_terms(problem), key=lambda t: selectivity(problem, t))[:1]
        axes = [axis_of(problem, term, bits_each(problem, len(terms))) for term in terms]
        return curve_layout(problem, axes, [i for i, axis in enumerate(axes) for _ in range(axis.bits)])


def selectivity(problem: Problem, term: Term) -> float:
    """Return the mean share of rows that pass a query's conditions on only this term; without a condition it is 1."""
    column = problem.sample.rows.ranks(term)
    values, places = column.values, column.places
    up_to = np.cumsum([0, *np.bincount(places[places >= 0], minlength=len(values))])
    nulls, nans = ((places == code).sum() for code in (NULL_CODE, NAN_CODE))

    def share(p: Predicate) -> float:
        condition = _condition_on(p, term)
        if condition is None or condition.kind not in (None, column.type.kind):
            return 1.0
        steps = condition.steps
        passing = sum(up_to[b] - up_to[a] for a, b in steps.where_true(values)) + nulls * (steps.on_null is True)
        if nans:
            passing += nans * ((steps.at(NAN) if condition.kind else steps.outcomes[0]) is True)
        return float(passing) / max(1, len(places))

    total = sum(weight * share(p) for p, weight in zip(problem.predicates, problem.weights, strict=True))
    return total / (sum(problem.weights) or 1.0)


def _condition_on(p: Predicate, term: Term) -> Stepwise | None:
    """Return the part of the predicate that is about only this term."""
    kids = p.children if isinstance(p, And) else (p,)
    conditions = (stepwise(conjunction(*group)) for group in grouped(kids))
    return next((c for c in conditions if c is not None and c.term == term), None)
