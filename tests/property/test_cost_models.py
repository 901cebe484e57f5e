"""The clauses that learners count with, against the evaluator: what clauses skip, the index skips too.

Learners judge thousands of sets of rows, so they count with clauses over cuts (`core/workload/query_clauses`) instead of
the evaluator. Both read the same facts here: of each cut, whether it is sometimes TRUE and sometimes not.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hedgerow.core.predicates.nodes import And, Compare, Like, Not, Or, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import F_BIT, T_BIT, NotedCondition, Stats
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.workload.query_clauses import Clauses

SETS = 40


def a_query(random: Random, cuts: list[Predicate], depth: int = 2) -> Predicate:
    """ANDs and ORs over the cuts and their negations, at most three a node so that no choice of clauses is left out."""
    if depth == 0 or random.random() < 0.3:
        cut = random.choice(cuts)
        return Not(cut) if random.random() < 0.3 else cut
    kids = tuple(a_query(random, cuts, depth - 1) for _ in range(random.randint(2, 3)))
    return And(kids) if random.random() < 0.5 else Or(kids)


def facts(random: Random, cuts: int) -> tuple[np.ndarray, np.ndarray]:
    """Of sets of rows, none of them empty, which cuts are sometimes TRUE and which sometimes FALSE."""
    draw = np.random.default_rng(random.randrange(1 << 30))
    some, other = draw.random((SETS, cuts)) < 0.5, draw.random((SETS, cuts)) < 0.5
    other |= ~some
    return some, other


def opened_by_the_evaluator(cuts: list[Predicate], some: np.ndarray, other: np.ndarray, p: Predicate) -> np.ndarray:
    bits = (some * T_BIT | other * F_BIT).astype(np.uint8)
    features = {predicate_text(cut): NotedCondition(cut, bits[:, i]) for i, cut in enumerate(cuts)}
    stats = Stats(np.full(SETS, 10, np.int64), {}, features)
    return (possible_outcomes(normalise(p), stats) & T_BIT) > 0


def opened_by_clauses(cuts: list[Predicate], some: np.ndarray, other: np.ndarray, p: Predicate) -> np.ndarray:
    clauses = Clauses.of(cuts, [p], [1.0])
    may = clauses.may(some, other)
    return may[:, 0] if may.shape[1] else np.ones(SETS, bool)  # a query that always or never matches is left out


@pytest.mark.parametrize("seed", range(150))
def test_equal_where_no_cut_follows_from_another(seed: int) -> None:
    random = Random(seed)
    cuts: list[Predicate] = [Like(col(name), "%x%") for name in "abcdef"]
    query = a_query(random, cuts)
    some, other = facts(random, len(cuts))
    expected = opened_by_the_evaluator(cuts, some, other, query)
    assert opened_by_clauses(cuts, some, other, query).tolist() == expected.tolist(), predicate_text(query)


@pytest.mark.parametrize("seed", range(150))
def test_clauses_skip_no_more_than_the_evaluator(seed: int) -> None:
    """Cuts on one column imply each other, which the evaluator uses: it may skip more."""
    random = Random(seed)
    cuts: list[Predicate] = list(
        dict.fromkeys(normalise(Compare(col(random.choice("ab")), "<", lit(random.randrange(6)))) for _ in range(6))
    )
    query = a_query(random, cuts)
    values = np.random.default_rng(seed).integers(-1, 7, (SETS, 4, 2))  # sets x rows x columns a, b
    truth = np.array([[values[..., "ab".index(c.term.path[0])] < c.literal.value] for c in cuts])[:, 0]  # type: ignore[union-attr]
    some, other = truth.any(axis=2).T, (~truth).any(axis=2).T
    by_clauses = opened_by_clauses(cuts, some, other, query)
    by_evaluator = opened_by_the_evaluator(cuts, some, other, query)
    assert not (by_evaluator & ~by_clauses).any(), predicate_text(query)
