"""Choose cuts as features of rows, one by one.

A feature serves the queries that imply it: they skip all rows without the feature. In the published form (qd-tree,
7.3), the more general of two features is chosen first, and the queries that it serves no longer count for the others.

    x < 9 (serves 4)  >  x < 5 (serves 3 of these)     y = 1 (serves 2, one of the 4)
    chosen: x < 9, and then y = 1 for the one remaining query; no query remains for x < 5

A condition that nearly every query has and nearly every row meets would serve all queries, though they skip hardly any
row. So by default the next feature is the one that lets queries skip the most further rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.layouts.tree import allowed_by, promises
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import And, In, Predicate, columns_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.core.pruning.block_stats import ANY, T_BIT, NotedCondition, Stats
from hedgerow.core.pruning.evaluator import must_match

Weights = Floats
MAX_ROWS_COUNTED = 10_000  # about: sample rows that are used to estimate how many rows a feature lets queries skip
LEAST_WORTH = 1e-9  # a smaller benefit of a feature, in weight or shares of it, is rounding


class Frequent(NamedTuple):
    """Chosen features, as numbers in the problem's list of cuts.

    `serves` is the weight of the queries that imply each; `named` is the weight of the queries that have it as a
    condition.
    """

    cuts: list[int]
    serves: Weights
    named: Weights


def frequent(
    problem: Problem, most: int, threshold: float, widest: float, among: Collection[int], skip: bool = False
) -> Frequent:
    """Choose at most `most` of these cuts; each is TRUE on some row of the sample, and on at most the share `widest`.

    Each serves further queries with at least the share `threshold` of the weight. With `skip` they are chosen by the
    rows that queries skip, each for at least the share `threshold` of all rows that the queries would read.
    """
    weight_of = different_queries(problem)
    weights = np.array(list(weight_of.values()), np.float64)
    least = threshold * weights.sum()
    share = problem.truth.counts / max(1, problem.truth.rows)
    cuts = np.array([c for c in sorted(among) if 0 < share[c] <= widest], np.int64)
    serves = implied(list(weight_of), [problem.cuts[c] for c in cuts]).T
    often = serves @ weights >= max(least, LEAST_WORTH)
    cuts, serves = cuts[often], serves[often]
    if skip:
        step = max(1, problem.truth.rows // MAX_ROWS_COUNTED)
        chosen = _by_skipping(serves, weights / weights.sum(), problem.truth[cuts][:, ::step], most, threshold)
    else:
        candidates = [problem.cuts[c] for c in cuts]
        chosen = _one_by_one(serves, weights, implied(candidates, candidates), most, least)
    features: list[int] = cuts[chosen].tolist()
    return Frequent(
        features, serves[chosen] @ weights, np.array(named(weight_of, [problem.cuts[c] for c in features]), np.float64)
    )


def different_queries(problem: Problem) -> dict[Predicate, float]:
    """Return the different queries, each with its weight."""
    weight_of: dict[Predicate, float] = {}
    for p, weight in zip(problem.predicates, problem.weights, strict=True):
        weight_of[normalise(p)] = weight_of.get(normalise(p), 0.0) + weight
    return weight_of


def named(weight_of: Mapping[Predicate, float], cuts: Sequence[Predicate]) -> list[float]:
    """Return for each cut the weight of the queries that have it as a condition."""
    return [sum(w for p, w in weight_of.items() if _has(p, cut)) for cut in cuts]


def _one_by_one(serves: Bools, weights: Weights, under: Bools, most: int, least: float) -> Ints:
    """Choose features, the most frequent first, and return them in this order; `under[i, k]`: i implies k."""
    unserved = weights.copy()  # the weights of the queries that no chosen feature serves
    open_ = np.ones(len(serves), bool)
    equal = under & under.T
    below = under & ~(equal & np.tri(len(serves), dtype=bool).T)  # the first of equal features counts as more general
    chosen: list[int] = []
    while len(chosen) < most and open_.any():
        free = np.flatnonzero(open_ & ~(below & open_).any(axis=1))
        frequency = serves[free] @ unserved
        best = int(free[np.argmax(frequency)])
        if frequency.max() < max(least, LEAST_WORTH):
            break
        open_[best] = False
        chosen.append(best)
        unserved[serves[best]] = 0.0
    return np.array(chosen, np.int64)


def _by_skipping(serves: Bools, weights: Weights, holds: Bools, most: int, threshold: float) -> Ints:
    """Choose features by the further rows that queries skip; return them in this order. `holds`: features x rows."""
    chosen: list[int] = []
    lacks = (~holds).astype(np.float32)
    while len(chosen) < most and len(serves):
        # Queries that the same features serve still read the same rows: the rows that have all these features.
        kinds, kind = np.unique(serves[chosen].T, axis=0, return_inverse=True)
        read = np.array([holds[chosen][features].all(axis=0) for features in kinds], np.float32)
        served = (serves * weights) @ np.eye(len(kinds))[kind.ravel()]
        skipped = (served * (lacks @ read.T)).sum(axis=1) / holds.shape[1]
        best = int(skipped.argmax())
        if skipped[best] < max(threshold, LEAST_WORTH):
            break
        chosen.append(best)
    return np.array(chosen, np.int64)


def implied(these: Sequence[Predicate], those: Sequence[Predicate]) -> Bools:
    """Return for each pair whether the first implies the second, as `these` x `those`.

    The rows on which one of `these` is TRUE are described like a block, so the evaluator answers for all at once.
    Conditions that bounds do not describe (ORs, NULL, excluded values) are compared pair by pair with `implies`.
    """
    conjuncts = [p.children if isinstance(p, And) else (p,) for p in these]
    users: dict[Predicate, list[int]] = {}  # the predicates that contain each condition
    for i, conditions in enumerate(conjuncts):
        for part in conditions:
            users.setdefault(part, []).append(i)
    terms = promises([allowed_by(conditions, ((k, True) for k in range(len(conditions)))) for conditions in conjuncts])
    odd = [part for part in users if not _is_range(part)]
    features = {predicate_text(part): NotedCondition(part, np.full(len(these), ANY, np.uint8)) for part in odd}
    for part in odd:
        features[predicate_text(part)].bits[users[part]] = T_BIT
    stats = Stats(np.ones(len(these), np.int64), terms, features, are_sorted=False)
    certain = np.array([must_match(q, stats) for q in those], bool).reshape(len(those), len(these)).T
    about = [columns_of(q) for q in those]
    for part in odd:
        columns = columns_of(part)
        certain[users[part]] |= np.array([about[k] <= columns and implies(part, q) for k, q in enumerate(those)], bool)
    return certain


def _is_range(part: Predicate) -> bool:
    """True if the condition is TRUE on one range of values, or on single values only."""
    function = stepwise(part)
    if function is None or function.kind is None:
        return False
    return isinstance(part, In) or function.steps.outcomes.count(True) <= 1


def _has(query: Predicate, cut: Predicate) -> bool:
    conditions = set(query.children) if isinstance(query, And) else {query}
    return cut in conditions or (isinstance(cut, And) and conditions >= set(cut.children))
