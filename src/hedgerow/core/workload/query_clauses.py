"""Queries as clauses over cuts: which of them a set of rows cannot skip, for many sets of rows at once.

Of a set of rows one knows which cuts are sometimes TRUE (`some`) and which sometimes not (`other`). A query is an AND
of clauses, a clause an OR of such facts; so for thousands of sets the answer is a few operations on whole arrays.

    x < 5 AND (y = 1 OR NOT z)      clauses   {some x < 5}   {some y = 1, other z}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt

from hedgerow.core.predicates.nodes import TRUE, And, Column, Const, Not, Or, Predicate, columns_of
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import Bools, Ints

Matrix = npt.NDArray[np.float32]
Clause = frozenset[int]  # 2 i: cut i is TRUE on some row; 2 i + 1: it is not on some row
Listed = tuple[Ints, Ints, Ints, Ints, npt.NDArray[np.float64]]
MOST = 64  # choices of one clause from each side of an OR; beyond, only those about the same columns


@dataclass(frozen=True)
class Lists:
    """Lists of numbers, none of them empty, one after the other; list i begins at `starts[i]`."""

    items: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @staticmethod
    def of(lists: Sequence[Sequence[int]]) -> Lists:
        sizes = [len(own) for own in lists]
        starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0)
        return Lists(np.array([x for own in lists for x in own], np.int64), starts.astype(np.int64))

    @property
    def ends(self) -> Ints:
        """The starts, and the end of the last list."""
        return np.append(self.starts, len(self.items))

    def any(self, holds: Bools) -> Bools:
        """Lists x anything: whether one of the list's items holds; `holds` is items x anything."""
        if not len(self):
            return np.zeros((0, *holds.shape[1:]), bool)
        found: Bools = np.logical_or.reduceat(holds[self.items], self.starts, axis=0)
        return found


@dataclass(frozen=True)
class Clauses:
    """`facts` are the lists of the clauses, `needs` the lists of clauses of the queries."""

    facts: Lists
    needs: Lists
    weights: Matrix

    @staticmethod
    def of(cuts: Sequence[Predicate], predicates: Sequence[Predicate], weights: Sequence[float]) -> Clauses:
        """Queries that ask the same count as one; those that skip nothing or everything, whatever the rows, are left
        out."""
        place = {predicate_text(cut): i for i, cut in enumerate(cuts)}
        about = [columns_of(cut) for cut in cuts]
        asked: dict[frozenset[Clause], float] = {}
        for p, weight in zip(predicates, weights, strict=True):
            needs = _clauses(normalise(p), place, about)
            if needs and frozenset() not in needs:
                asked[needs] = asked.get(needs, 0.0) + weight
        listed = sorted({clause for needs in asked for clause in needs}, key=sorted)
        at = {clause: i for i, clause in enumerate(listed)}
        return Clauses(
            Lists.of([sorted(clause) for clause in listed]),
            Lists.of([sorted(at[clause] for clause in needs) for needs in asked]),
            np.array(list(asked.values()), np.float32).reshape(-1),
        )

    def may(self, some: Bools, other: Bools) -> Bools:
        """Sets of rows x queries: which queries each set cannot skip. `some` and `other` are sets x cuts."""
        return ~self._skips(some.T, other.T).T

    def skipped(self, some: Bools, other: Bools) -> Matrix:
        """The weight of the queries that each set skips."""
        return self.weights @ self._skips(some.T, other.T)

    def hold(self, some: Bools, other: Bools) -> Bools:
        """Sets of rows x clauses: which clauses may hold."""
        return self.facts.any(self._facts(some.T, other.T)).T

    @property
    def lists(self) -> Listed:
        """As the kernels take them."""
        weights = self.weights.astype(np.float64)
        return self.facts.items, self.facts.ends, self.needs.items, self.needs.ends, weights

    def _skips(self, some: Bools, other: Bools) -> Bools:
        """Queries x sets, of cuts x sets: laid out so that the innermost loops run over the sets."""
        return self.needs.any(~self.facts.any(self._facts(some, other)))

    @staticmethod
    def _facts(some: Bools, other: Bools) -> Bools:
        holds = np.empty((2 * len(some), some.shape[1]), bool)
        holds[0::2], holds[1::2] = some, other
        return holds


def _clauses(p: Predicate, place: dict[str, int], about: Sequence[frozenset[Column]]) -> frozenset[Clause]:
    """All have to hold on some row of a set that the query cannot skip; none: it may always match."""
    if predicate_text(p) in place:
        return frozenset([frozenset([2 * place[predicate_text(p)]])])
    match p:
        case Not(kid) if predicate_text(kid) in place:
            return frozenset([frozenset([2 * place[predicate_text(kid)] + 1])])
        case And(kids):
            return frozenset().union(*(_clauses(kid, place, about) for kid in kids))
        case Or(kids):
            return _either([_clauses(kid, place, about) for kid in kids], about)
        case Const() if p != TRUE:
            return frozenset([frozenset()])
    return frozenset()


def _either(kids: Sequence[frozenset[Clause]], about: Sequence[frozenset[Column]]) -> frozenset[Clause]:
    """Of an OR: what all its sides ask for, and of the rest each choice of one clause a side. Where there are too many
    choices, those about the same columns have to do: fewer clauses skip less, but never wrongly."""
    common = frozenset.intersection(*kids)
    rest = [kid - common for kid in kids]
    if not all(rest):
        return common  # one side asks for no more
    choices = [rest]
    if prod(map(len, rest)) > MOST:
        by_columns = [_by_columns(kid, about) for kid in rest]
        same = [key for key in by_columns[0] if all(key in kid for kid in by_columns)]
        choices = [[kid[key] for kid in by_columns] for key in sorted(same, key=lambda key: sorted(map(str, key)))]
        choices = [own for own in choices if prod(map(len, own)) <= MOST]
    return common | {frozenset().union(*chosen) for own in choices for chosen in product(*own)}


def _by_columns(
    clauses: frozenset[Clause], about: Sequence[frozenset[Column]]
) -> dict[frozenset[Column], frozenset[Clause]]:
    found: dict[frozenset[Column], set[Clause]] = {}
    for clause in clauses:
        found.setdefault(frozenset().union(*(about[fact // 2] for fact in clause)), set()).add(clause)
    return {key: frozenset(own) for key, own in found.items()}
