"""Queries as clauses over cuts, to compute which queries can skip a set of rows, for many sets at once.

Two facts per cut describe a set of rows: the cut is TRUE on some row (`some`); it is not TRUE on some row (`other`).
A query is an AND of clauses, and a clause is an OR of facts. So a few array operations evaluate thousands of sets.

    x < 5 AND (y = 1 OR NOT z)      clauses   {some x < 5}   {some y = 1, other z}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.predicates.nodes import TRUE, And, Column, Const, Not, Or, Predicate, columns_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text

Matrix = npt.NDArray[np.float32]
Clause = frozenset[int]  # numbers of facts; 2 i: cut i is TRUE on some row; 2 i + 1: cut i is not TRUE on some row
MAX_OR_CLAUSES = 64  # most clauses of one OR: each choice of one clause from each side makes a clause


class ClauseArrays(NamedTuple):
    """The clauses of all queries as arrays for the compiled loops; see `core/learning/trees/kernels.py`."""

    facts: Ints
    fact_starts: Ints
    needs: Ints
    need_starts: Ints
    weights: Floats


@dataclass(frozen=True)
class Lists:
    """Several non-empty lists of numbers, stored one after the other; list i begins at `starts[i]`."""

    items: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @staticmethod
    def of(lists: Sequence[Sequence[int]]) -> Lists:
        sizes = [len(numbers) for numbers in lists]
        starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0)
        return Lists(np.array([x for numbers in lists for x in numbers], np.int64), starts.astype(np.int64))

    @property
    def ends(self) -> Ints:
        """The starts, followed by the number of items: list i is `items[ends[i] : ends[i + 1]]`."""
        return np.append(self.starts, len(self.items))

    def any(self, holds: Bools) -> Bools:
        """Return for each list whether one of its items holds.

        `holds` has a row for each item; the result has a row for each list, and the same columns.
        """
        if not len(self):
            return np.zeros((0, *holds.shape[1:]), bool)
        list_holds: Bools = np.logical_or.reduceat(holds[self.items], self.starts, axis=0)
        return list_holds


@dataclass(frozen=True)
class Clauses:
    """Queries as ANDs of clauses: `facts` lists the facts of each clause, `needs` the clauses of each query."""

    facts: Lists
    needs: Lists
    weights: Matrix

    @staticmethod
    def of(cuts: Sequence[Predicate], predicates: Sequence[Predicate], weights: Sequence[float]) -> Clauses:
        """Build the clauses of the predicates; equal queries become one.

        Queries that can never skip rows, or always skip all of them, are left out.
        """
        place = {predicate_text(cut): i for i, cut in enumerate(cuts)}
        about = [columns_of(cut) for cut in cuts]
        weight_of: dict[frozenset[Clause], float] = {}
        for p, weight in zip(predicates, weights, strict=True):
            needs = _clauses(normalise(p), place, about)
            if needs and frozenset() not in needs:
                weight_of[needs] = weight_of.get(needs, 0.0) + weight
        clauses = sorted({clause for needs in weight_of for clause in needs}, key=sorted)
        number = {clause: i for i, clause in enumerate(clauses)}
        return Clauses(
            Lists.of([sorted(clause) for clause in clauses]),
            Lists.of([sorted(number[clause] for clause in needs) for needs in weight_of]),
            np.array(list(weight_of.values()), np.float32).reshape(-1),
        )

    def may(self, some: Bools, other: Bools) -> Bools:
        """Return an array (sets of rows, queries): True if the query has to read the set.

        `some`, `other`: arrays (sets of rows, cuts).
        """
        return ~self._skips(some.T, other.T).T

    def skipped(self, some: Bools, other: Bools) -> Matrix:
        """Return for each set of rows the total weight of the queries that skip it."""
        return self.weights @ self._skips(some.T, other.T)

    def hold(self, some: Bools, other: Bools) -> Bools:
        """Return an array (sets of rows, clauses): True if the clause may hold on the set."""
        return self.facts.any(self._facts(some.T, other.T)).T

    @property
    def arrays(self) -> ClauseArrays:
        """The clauses as arrays for the compiled loops."""
        weights = self.weights.astype(np.float64)
        return ClauseArrays(self.facts.items, self.facts.ends, self.needs.items, self.needs.ends, weights)

    def _skips(self, some: Bools, other: Bools) -> Bools:
        """Return an array (queries, sets of rows): True if the query skips the set.

        `some`, `other`: arrays (cuts, sets of rows). The sets come last, so the innermost loops run over them.
        """
        return self.needs.any(~self.facts.any(self._facts(some, other)))

    @staticmethod
    def _facts(some: Bools, other: Bools) -> Bools:
        holds = np.empty((2 * len(some), some.shape[1]), bool)
        holds[0::2], holds[1::2] = some, other
        return holds


def _clauses(p: Predicate, place: dict[str, int], about: Sequence[frozenset[Column]]) -> frozenset[Clause]:
    """Return the clauses of a query: it reads a set of rows only if all hold on it; without any it reads all sets."""
    if predicate_text(p) in place:
        return frozenset([frozenset([2 * place[predicate_text(p)]])])
    match p:
        case Not(kid) if predicate_text(kid) in place:
            return frozenset([frozenset([2 * place[predicate_text(kid)] + 1])])
        case And(kids):
            return frozenset().union(*(_clauses(kid, place, about) for kid in kids))
        case Or(kids):
            return _clauses_of_or([_clauses(kid, place, about) for kid in kids], about)
        case Const() if p != TRUE:
            return frozenset([frozenset()])
    return frozenset()


def _clauses_of_or(kids: Sequence[frozenset[Clause]], about: Sequence[frozenset[Column]]) -> frozenset[Clause]:
    """Return the clauses of an OR: the clauses that all sides share, and the combinations of the others.

    A combination joins one clause from each side into a single clause.

    If there are too many choices, only clauses about the same columns are combined. Fewer clauses skip less, but never
    skip a row that is needed.
    """
    common = frozenset.intersection(*kids)
    remaining = [kid - common for kid in kids]
    if not all(remaining):
        return common  # one side has no other clause
    choices = [remaining]
    if prod(map(len, remaining)) > MAX_OR_CLAUSES:
        by_columns = [_by_columns(kid, about) for kid in remaining]
        same = [key for key in by_columns[0] if all(key in kid for kid in by_columns)]
        choices = [[kid[key] for kid in by_columns] for key in sorted(same, key=lambda key: sorted(map(str, key)))]
        choices = [sides for sides in choices if prod(map(len, sides)) <= MAX_OR_CLAUSES]
    return common | {frozenset().union(*chosen) for sides in choices for chosen in product(*sides)}


def _by_columns(
    clauses: frozenset[Clause], about: Sequence[frozenset[Column]]
) -> dict[frozenset[Column], frozenset[Clause]]:
    by_columns: dict[frozenset[Column], set[Clause]] = {}
    for clause in clauses:
        by_columns.setdefault(frozenset().union(*(about[fact // 2] for fact in clause)), set()).add(clause)
    return {columns: frozenset(same) for columns, same in by_columns.items()}
