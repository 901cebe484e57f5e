"""Which cuts make good features of a row: the frequent ones, chosen one by one (qd-tree, 7.3).

A feature serves the queries that it subsumes: those that are TRUE only where it is, so that rows without the feature
are of no use to them. The more general of two comes first; what it serves no longer speaks for the others.

    x < 9 (serves 4)  >  x < 5 (serves 3 of these)     y = 1 (serves 2, one of the 4)
    chosen: x < 9, and then y = 1 for the one query that is left; nothing is left for x < 5
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.expr import And, Predicate, columns
from hedgerow.core.implies import implies
from hedgerow.core.problem import Problem
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Bools, Ints

Weights = npt.NDArray[np.float64]


class Frequent(NamedTuple):
    """`cuts` are places in the problem's cuts; `serves` the weight of the queries that each subsumes, `named` of those
    that have it as one of their own conditions."""

    cuts: list[int]
    serves: Weights
    named: Weights


def frequent(problem: Problem, most: int, threshold: float, widest: float, among: Collection[int]) -> Frequent:
    """At most `most` of these cuts, each for queries that have at least the share `threshold` of the weight and that no
    other chosen one serves; none that is TRUE on more than `widest` of the rows, or on none of the sample's."""
    asked: dict[Predicate, float] = {}
    for p, weight in zip(problem.predicates, problem.weights, strict=True):
        asked[normalise(p)] = asked.get(normalise(p), 0.0) + weight
    weights = np.array(list(asked.values()), np.float64)
    least = threshold * weights.sum()
    share = problem.truth.mean(axis=1)
    cuts = np.array([c for c in sorted(among) if 0 < share[c] <= widest], np.int64)
    serves = _implied(list(asked), [problem.cuts[c] for c in cuts]).T
    often = serves @ weights >= max(least, 1e-9)
    cuts, serves = cuts[often], serves[often]
    chosen = _one_by_one(serves, weights, _implied(*[[problem.cuts[c] for c in cuts]] * 2), most, least)
    found: list[int] = cuts[chosen].tolist()
    named = [sum(w for p, w in asked.items() if _has(p, problem.cuts[c])) for c in found]
    return Frequent(found, serves[chosen] @ weights, np.array(named, np.float64))


def _one_by_one(serves: Bools, weights: Weights, implied: Bools, most: int, least: float) -> Ints:
    """Features in the order of choice; `implied[i, k]`: i is subsumed by k."""
    left = weights.copy()  # of queries that no chosen feature serves
    open_ = np.ones(len(serves), bool)
    equal = implied & implied.T
    below = implied & ~(equal & np.tri(len(serves), dtype=bool).T)  # of equals the first stands above the others
    chosen: list[int] = []
    while len(chosen) < most and open_.any():
        free = np.flatnonzero(open_ & ~(below & open_).any(axis=1))
        frequency = serves[free] @ left
        best = int(free[np.argmax(frequency)])
        if frequency.max() < max(least, 1e-9):
            break
        open_[best] = False
        chosen.append(best)
        left[serves[best]] = 0.0
    return np.array(chosen, np.int64)


def _implied(these: list[Predicate], those: list[Predicate]) -> Bools:
    """Which of these make sure of which of those. Only what speaks of no other columns can follow."""
    found = np.zeros((len(these), len(those)), bool)
    about = [columns(q) for q in those]
    for i, p in enumerate(these):
        mine = columns(p)
        found[i] = [about[k] <= mine and implies(p, q) for k, q in enumerate(those)]
    return found


def _has(query: Predicate, cut: Predicate) -> bool:
    own = set(query.children) if isinstance(query, And) else {query}
    return cut in own or (isinstance(cut, And) and own >= set(cut.children))
