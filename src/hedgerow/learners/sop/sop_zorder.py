"""Skipping-oriented partitioning and Z-order combined (thesis, 4.1.2): row groups are one more dimension of a Z-order.

Z-order   terms compared with changing literals         ip = '10.3.44.5', ip = '10.22.35.7', ...
SOP       conditions that recur                         info['courier'] = 'DHL', note LIKE '%broken%'
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout
from hedgerow.core.layouts.feature_groups import GroupLayout
from hedgerow.core.learning.curve_order import (
    axis_of,
    bits_each,
    curve_layout,
    filtered_terms,
    named_terms,
    round_robin_pattern,
)
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import Predicate, Term, atoms_of, terms_of
from hedgerow.core.predicates.sql_text import feature_text, term_text
from hedgerow.core.workload.statistics import comparison_points
from hedgerow.learners.sop.bottom_up import BottomUp, Cost
from hedgerow.learners.sop.clustering import chained
from hedgerow.learners.sop.correlation import Policy, are_alike, conditions_alike, primary, terms_alike
from hedgerow.learners.sop.features import different_queries, named

MAX_CANDIDATES = 24  # terms whose orders are compared, in all pairs
MAX_ROWS_ORDERED = 5_000  # about: sample rows that are used to compare the orders of two terms


@dataclass(frozen=True)
class SopZOrder:
    """A learner of a Z-order by `columns` and by row groups.

    By default the columns are the `most` terms most often filtered on, among the terms compared with at least `points`
    values. If terms order rows alike, except for a share `alike` of the pairs, only one is used; `policy` chooses it.

    All other conditions may become features of the row groups, with the parameters of `BottomUp`. With
    `cost="queries"`, groups by both choices of features and a layout without groups are tried, and the one that reads
    least of the sample wins. With `cost="sop"`, only one of several conditions that hold on the same rows is a feature.
    """

    columns: tuple[str, ...] = ()
    most: int = 4
    points: int = 10
    features: int = 15
    threshold: float = 0.001
    cost: Cost = "queries"
    alike: float = 0.1
    policy: Policy = "frequency"

    def fit(self, problem: Problem) -> CurveLayout:
        if not isinstance(self.alike, int | float) or not 0 <= self.alike < 0.5:
            raise LayoutError(f"alike must be a share of the pairs of rows, below 0.5, not {self.alike!r}")
        changing = {} if self.columns else self._changing(problem)
        along = named_terms(problem, self.columns) or self._apart(problem, changing)
        groups = BottomUp(self.features, self.threshold, cost=self.cost)
        for_curve = {*along, *changing} if self.cost == "sop" else along
        cuts = [i for i, cut in enumerate(problem.cuts) if not all(_is_about(a, for_curve) for a in atoms_of(cut))]
        if self.cost == "sop":
            often = named(different_queries(problem), [problem.cuts[i] for i in cuts])
            alike = conditions_alike(problem.truth[cuts], self.alike)
            cuts = [cuts[i] for i in primary(alike, often, len(cuts), self.policy)]
        choices = [groups.chosen(problem, cuts)]
        if self.cost == "queries":
            choices.append(groups.chosen(problem, cuts, published=True))
        layouts = [groups.grouped(problem, choice) for choice in {tuple(c.cuts): c for c in choices}.values()]
        if self.cost == "queries":
            layouts.append(GroupLayout((), {}))
        return min((_interleaved(problem, layout, along) for layout in layouts), key=problem.reads)

    def reasons(self, problem: Problem, layout: CurveLayout) -> list[str]:
        """Return a sentence for each filtered term and each feature: its place in the layout, or why it has none."""
        along = [axis.term for axis in layout.axes if isinstance(axis, Axis)]
        weights, points = filtered_terms(problem), comparison_points(problem.predicates)
        changing = {} if self.columns else self._changing(problem)
        total = sum(problem.weights)

        def reason(term: Term) -> str:
            values = len(points.get(term_text(term), ()))
            if self.columns:
                return "in the Z-order, as named" if term in along else "not named for the Z-order"
            if term in along:
                return f"in the Z-order, for the queries have {values:,} values for it"
            if values < self.points:
                why = f"the queries have fewer than {self.points:,} values for it: {values:,}"
            elif term not in changing:
                why = f"{MAX_CANDIDATES} others are filtered on more often"
            else:
                ranks = _ranks(problem, term)
                chosen = next((t for t in along if are_alike(ranks, _ranks(problem, t), self.alike)), None)
                why = f"it orders rows as {term_text(chosen)} does" if chosen else f"{self.most} are more important"
            return f"not in the Z-order, for {why}"

        groups = [axis.layout for axis in layout.axes if isinstance(axis, BlockAxis)]
        features = [p for group in groups for p in group.features if isinstance(p, Predicate)]
        often = named(different_queries(problem), features)
        return [
            *(f"{term_text(t)}, in {weights[t] / total:.0%} of the queries: {reason(t)}" for t in weights),
            *(
                f"{feature_text(p)}, in {weight / total:.0%} of the queries: a feature of the row groups"
                for p, weight in zip(features, often, strict=True)
            ),
            *([] if features else ["no condition is a feature of row groups"]),
        ]

    def _changing(self, problem: Problem) -> dict[Term, float]:
        """Return the terms compared with many values, the most frequent first; each with the weight of its queries."""
        points = comparison_points(problem.predicates)
        weights = filtered_terms(problem)
        often = [t for t in weights if len(points.get(term_text(t), ())) >= self.points]
        return {t: weights[t] for t in often[:MAX_CANDIDATES]}

    def _apart(self, problem: Problem, weights: Mapping[Term, float]) -> list[Term]:
        """Return the `most` terms most often filtered on; of terms that order rows alike, only one."""
        terms = list(weights)
        often = list(weights.values())
        graph = terms_alike([_ranks(problem, term) for term in terms], self.alike)
        return [terms[i] for i in primary(graph, often, self.most, self.policy)]


def _ranks(problem: Problem, term: Term) -> Ints:
    """Return the term's ranks on some rows of the sample."""
    step = max(1, len(problem.sample) // MAX_ROWS_ORDERED)
    return problem.sample.rows.ranks(term).places[::step].astype(np.int64)


def _interleaved(problem: Problem, groups: GroupLayout, along: Sequence[Term]) -> CurveLayout:
    """Return a Z-order of the terms and, if there are several, the groups."""
    axes: list[Axis | BlockAxis] = [BlockAxis(ordered(groups))] if groups.blocks > 1 else []
    bits = bits_each(problem, len(axes) + len(along))
    axes += [axis_of(problem, term, bits) for term in along]
    return curve_layout(problem, axes, round_robin_pattern(axes))


def _is_about(atom: Predicate, along: Collection[Term]) -> bool:
    return bool(terms_of(atom)) and terms_of(atom) <= set(along)


def ordered(layout: GroupLayout) -> GroupLayout:
    """Renumber the groups so that neighbours have zeros in common."""
    number = np.argsort(chained(layout.vectors))
    return GroupLayout(layout.predicates, {v: int(number[b]) for v, b in layout.block_of.items()})
