"""Which cuts make good features of a row, chosen one by one.

A feature serves the queries that it subsumes: those that are TRUE only where it is, so that rows without the feature
are of no use to them. As published (qd-tree, 7.3) the more general of two comes first, and what it serves no longer
speaks for the others.

    x < 9 (serves 4)  >  x < 5 (serves 3 of these)     y = 1 (serves 2, one of the 4)
    chosen: x < 9, and then y = 1 for the one query that is left; nothing is left for x < 5

Where nearly every query has one condition that nearly every row meets, that serves all and nothing is skipped. So here
the feature comes first that lets queries skip most rows, beside those that the features before it let them skip.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.layouts.tree import allowed_by, promises
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import And, In, Predicate, columns_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.core.pruning.block_stats import ANY, T_BIT, Bools, Ints, NotedCondition, Stats
from hedgerow.core.pruning.evaluator import must_match

Weights = npt.NDArray[np.float64]
LOOKED_AT = 10_000  # rows that say how many a feature lets queries skip


class Frequent(NamedTuple):
    """`cuts` are places in the problem's cuts; `serves` the weight of the queries that each subsumes, `named` of those
    that have it as one of their own conditions."""

    cuts: list[int]
    serves: Weights
    named: Weights


def frequent(
    problem: Problem, most: int, threshold: float, widest: float, among: Collection[int], skip: bool = False
) -> Frequent:
    """At most `most` of these cuts, each for queries that have at least the share `threshold` of the weight and that no
    other chosen one serves; none that is TRUE on more than `widest` of the rows, or on none of the sample's. `skip`:
    by the rows they let queries skip, at least the share `threshold` of what all queries would read."""
    asked: dict[Predicate, float] = {}
    for p, weight in zip(problem.predicates, problem.weights, strict=True):
        asked[normalise(p)] = asked.get(normalise(p), 0.0) + weight
    weights = np.array(list(asked.values()), np.float64)
    least = threshold * weights.sum()
    share = problem.truth.mean(axis=1)
    cuts = np.array([c for c in sorted(among) if 0 < share[c] <= widest], np.int64)
    serves = implied(list(asked), [problem.cuts[c] for c in cuts]).T
    often = serves @ weights >= max(least, 1e-9)
    cuts, serves = cuts[often], serves[often]
    if skip:
        step = max(1, problem.truth.shape[1] // LOOKED_AT)
        chosen = _by_skipping(serves, weights / weights.sum(), problem.truth[cuts, ::step], most, threshold)
    else:
        kept = [problem.cuts[c] for c in cuts]
        chosen = _one_by_one(serves, weights, implied(kept, kept), most, least)
    found: list[int] = cuts[chosen].tolist()
    named = [sum(w for p, w in asked.items() if _has(p, problem.cuts[c])) for c in found]
    return Frequent(found, serves[chosen] @ weights, np.array(named, np.float64))


def _one_by_one(serves: Bools, weights: Weights, under: Bools, most: int, least: float) -> Ints:
    """Features in the order of choice; `under[i, k]`: i is subsumed by k."""
    left = weights.copy()  # of queries that no chosen feature serves
    open_ = np.ones(len(serves), bool)
    equal = under & under.T
    below = under & ~(equal & np.tri(len(serves), dtype=bool).T)  # of equals the first stands above the others
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


def _by_skipping(serves: Bools, weights: Weights, holds: Bools, most: int, threshold: float) -> Ints:
    """Features in the order of choice; `holds` is features x rows."""
    chosen: list[int] = []
    lacks = (~holds).astype(np.float32)
    while len(chosen) < most and len(serves):
        # Queries that the same features serve still read the same rows: those that have all of these.
        kinds, kind = np.unique(serves[chosen].T, axis=0, return_inverse=True)
        read = np.array([holds[chosen][own].all(axis=0) for own in kinds], np.float32)
        served = (serves * weights) @ np.eye(len(kinds))[kind.ravel()]
        skipped = (served * (lacks @ read.T)).sum(axis=1) / holds.shape[1]
        best = int(skipped.argmax())
        if skipped[best] < max(threshold, 1e-9):
            break
        chosen.append(best)
    return np.array(chosen, np.int64)


def implied(these: Sequence[Predicate], those: Sequence[Predicate]) -> Bools:
    """Which of these make sure of which of those. The rows on which each is TRUE are described as a block is, so all
    are asked at once; `implies`, pair by pair, is for what bounds do not describe: ORs, NULL, values left out."""
    parts = [p.children if isinstance(p, And) else (p,) for p in these]
    of: dict[Predicate, list[int]] = {}
    for i, own in enumerate(parts):
        for part in own:
            of.setdefault(part, []).append(i)
    terms = promises([allowed_by(own, ((k, True) for k in range(len(own)))) for own in parts])
    odd = [part for part in of if not _is_range(part)]
    features = {predicate_text(part): NotedCondition(part, np.full(len(these), ANY, np.uint8)) for part in odd}
    for part in odd:
        features[predicate_text(part)].bits[of[part]] = T_BIT
    known = Stats(np.ones(len(these), np.int64), terms, features)
    found = np.array([must_match(q, known) for q in those], bool).reshape(len(those), len(these)).T
    about = [columns_of(q) for q in those]
    for part in odd:
        mine = columns_of(part)
        found[of[part]] |= np.array([about[k] <= mine and implies(part, q) for k, q in enumerate(those)], bool)
    return found


def _is_range(part: Predicate) -> bool:
    """TRUE from one value to another, or on single values."""
    known = stepwise(part)
    if known is None or known.kind is None:
        return False
    return isinstance(part, In) or known.steps.outcomes.count(True) <= 1


def _has(query: Predicate, cut: Predicate) -> bool:
    own = set(query.children) if isinstance(query, And) else {query}
    return cut in own or (isinstance(cut, And) and own >= set(cut.children))
