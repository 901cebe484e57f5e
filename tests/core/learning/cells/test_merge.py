"""Clauses against the predicates they stand for, and merging against the slow way."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.cells.merge import Cells, merge
from hedgerow.core.predicates.nodes import TRUE, And, Compare, Not, Opaque, Or, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.workload.candidate_cuts import cuts_of
from hedgerow.core.workload.query_clauses import Clauses

ATOMS = [Compare(col(c), "=", lit(1)) for c in "abcd"] + [Opaque("f(e)", (col("e"),)), Opaque("g(e)", (col("e"),))]


def a_query(random: Random, depth: int = 2) -> Predicate:
    if depth == 0 or random.random() < 0.3:
        atom = random.choice(ATOMS)
        return Not(atom) if isinstance(atom, Opaque) and random.random() < 0.4 else atom
    kids = tuple(a_query(random, depth - 1) for _ in range(random.randint(2, 3)))
    return And(kids) if random.random() < 0.5 else Or(kids)


def may(p: Predicate, some: set[str], other: set[str]) -> bool:
    """The slow reading: a set of rows cannot skip `p`."""
    match p:
        case And(kids):
            return all(may(k, some, other) for k in kids)
        case Or(kids):
            return any(may(k, some, other) for k in kids)
        case Not(kid):
            return predicate_text(kid) in other
    return predicate_text(p) in some


@given(random=st.integers(0, 2**32).map(Random))
def test_clauses_say_what_the_predicates_say(random: Random) -> None:
    queries = [normalise(a_query(random)) for _ in range(random.randint(1, 6))]
    weights = [float(random.randint(1, 5)) for _ in queries]
    cuts = cuts_of(queries)
    known = {predicate_text(c) for c in cuts}
    queries = [q for q in queries if q != TRUE]
    weights = weights[: len(queries)]
    clauses = Clauses.of(cuts, queries, weights)
    some = np.array([[random.random() < 0.5 for _ in cuts] for _ in range(8)], bool).reshape(8, len(cuts))
    other = some ^ np.array([[random.random() < 0.7 for _ in cuts] for _ in range(8)], bool).reshape(8, len(cuts))
    for row, skipped in enumerate(clauses.skipped(some, other).tolist()):
        s = {predicate_text(c) for c, is_ in zip(cuts, some[row], strict=True) if is_}
        o = {predicate_text(c) for c, is_ in zip(cuts, other[row], strict=True) if is_}
        # A negated opaque atom is a cut of its own or the other side of one: both readings have to be understood.
        slow = sum(w for q, w in zip(queries, weights, strict=True) if not may(q, s, o) and _plain(q, known))
        fast_all = skipped
        assert fast_all <= sum(w for q, w in zip(queries, weights, strict=True) if not may(q, s, o)) + 1e-3
        assert fast_all >= slow - 1e-3


def _plain(q: Predicate, known: set[str]) -> bool:
    match q:
        case And(kids) | Or(kids):
            return all(_plain(k, known) for k in kids)
        case Not(kid):
            return predicate_text(kid) in known
    return predicate_text(q) in known


def cost(cells: Cells, clauses: Clauses, blocks: np.ndarray) -> float:
    total = 0.0
    for block in set(blocks.tolist()):
        own = blocks == block
        read = clauses.may(cells.some[own].any(0)[None], cells.other[own].any(0)[None])[0] @ clauses.weights
        total += float(cells.rows[own].sum() * read)
    return total


@pytest.mark.parametrize("seed", range(30))
def test_merging_keeps_the_minimum_and_beats_chance(seed: int) -> None:
    random = Random(seed)
    rng = np.random.default_rng(seed)
    queries = [normalise(a_query(random)) for _ in range(8)]
    cuts = cuts_of(queries)
    clauses = Clauses.of(cuts, queries, [1.0] * len(queries))
    n, least = 40, 50
    some = rng.random((n, len(cuts))) < 0.3
    cells = Cells(rng.integers(0, 30, n), some, ~some | (rng.random(some.shape) < 0.1))
    blocks = merge(cells, clauses, least)
    sizes = np.bincount(blocks, cells.rows)
    assert sizes.min() >= least
    assert sorted(set(blocks.tolist())) == list(range(blocks.max() + 1))
    assert blocks.tolist() == merge(cells, clauses, least).tolist()
    chance = []
    for _ in range(20):
        order, other_blocks, at, size = rng.permutation(n), np.zeros(n, np.int64), 0, 0
        for cell in order:
            other_blocks[cell] = at
            size += cells.rows[cell]
            if size >= least:
                at, size = at + 1, 0
        chance.append(cost(cells, clauses, other_blocks))
    assert cost(cells, clauses, blocks) <= min(chance) + 1e-3


def test_one_cell_is_one_block() -> None:
    clauses = Clauses.of((), (), ())
    assert merge(Cells(np.array([3]), np.zeros((1, 0), bool), np.zeros((1, 0), bool)), clauses, 10).tolist() == [0]
