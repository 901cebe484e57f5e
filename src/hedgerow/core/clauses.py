"""Queries as clauses over cuts: which of them a set of rows cannot skip, for many sets of rows at once.

Of a set of rows one knows which cuts are sometimes TRUE (`some`) and which sometimes not (`other`). A query is an AND
of clauses, a clause an OR of such facts; so for thousands of sets the answer is two products of matrices.

    x < 5 AND (y = 1 OR NOT z)      clauses   {some x < 5}   {some y = 1, other z}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow.core.expr import TRUE, And, Const, Not, Or, Predicate, text
from hedgerow.core.rewrite import normalise
from hedgerow.core.stats import Bools

Matrix = npt.NDArray[np.float32]
Clause = frozenset[int]  # 2 i: cut i is TRUE on some row; 2 i + 1: it is not on some row
MOST = 64  # clauses of one query; beyond, an OR of ANDs counts as something that may always hold


@dataclass(frozen=True)
class Clauses:
    """`clause_facts` is facts x clauses, `query_clauses` clauses x queries, both of zeros and ones."""

    clause_facts: Matrix
    query_clauses: Matrix
    weights: Matrix

    @staticmethod
    def of(cuts: Sequence[Predicate], predicates: Sequence[Predicate], weights: Sequence[float]) -> Clauses:
        """Queries that ask the same count as one; those that skip nothing, whatever the rows, are left out."""
        place = {text(cut): i for i, cut in enumerate(cuts)}
        asked: dict[frozenset[Clause], float] = {}
        for p, weight in zip(predicates, weights, strict=True):
            needs = _clauses(normalise(p), place)
            if needs:
                asked[needs] = asked.get(needs, 0.0) + weight
        listed = sorted({clause for needs in asked for clause in needs}, key=sorted)
        at = {clause: i for i, clause in enumerate(listed)}
        facts = np.zeros((2 * len(cuts), len(listed)), np.float32)
        queries = np.zeros((len(listed), len(asked)), np.float32)
        for clause, i in at.items():
            facts[list(clause), i] = 1
        for k, needs in enumerate(asked):
            queries[[at[clause] for clause in needs], k] = 1
        return Clauses(facts, queries, np.array(list(asked.values()), np.float32).reshape(-1))

    def may(self, some: Bools, other: Bools) -> Bools:
        """Sets of rows x queries: which queries each set cannot skip. `some` and `other` are sets x cuts."""
        facts = np.empty((len(some), 2 * some.shape[1]), np.float32)
        facts[:, 0::2], facts[:, 1::2] = some, other
        fails = (facts @ self.clause_facts == 0).astype(np.float32)
        found: Bools = fails @ self.query_clauses == 0
        return found

    def skipped(self, some: Bools, other: Bools) -> Matrix:
        """The weight of the queries that each set skips."""
        return (~self.may(some, other)).astype(np.float32) @ self.weights


def _clauses(p: Predicate, place: dict[str, int]) -> frozenset[Clause]:
    """All have to hold on some row of a set that the query cannot skip; none: it may always match."""
    if text(p) in place:
        return frozenset([frozenset([2 * place[text(p)]])])
    match p:
        case Not(kid) if text(kid) in place:
            return frozenset([frozenset([2 * place[text(kid)] + 1])])
        case And(kids):
            return frozenset().union(*(_clauses(kid, place) for kid in kids))
        case Or(kids):
            found: set[Clause] = {frozenset()}
            for kid in kids:
                more = _clauses(kid, place)
                if not more or len(found) * len(more) > MOST:
                    return frozenset()
                found = {a | b for a in found for b in more}
            return frozenset(found)
        case Const() if p != TRUE:
            return frozenset([frozenset()])
    return frozenset()
