"""Merged cells hold enough rows, and their blocks cost no more than random ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hedgerow.core.learning.cells.merge import Cells, merge
from hedgerow.core.predicates.nodes import And, Compare, Not, Opaque, Or, Predicate, col, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.workload.candidate_cuts import cuts_of
from hedgerow.core.workload.query_clauses import Clauses

ATOMS = [Compare(col(c), "=", lit(1)) for c in "abcd"] + [Opaque("f(e)", (col("e"),)), Opaque("g(e)", (col("e"),))]


def a_query(random: Random, depth: int = 2) -> Predicate:
    if depth == 0 or random.random() < 0.3:
        atom = random.choice(ATOMS)
        return Not(atom) if isinstance(atom, Opaque) and random.random() < 0.4 else atom
    kids = tuple(a_query(random, depth - 1) for _ in range(random.randint(2, 3)))
    return And(kids) if random.random() < 0.5 else Or(kids)


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
