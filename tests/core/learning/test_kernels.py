"""The compiled loops against numpy and plain Python."""

from __future__ import annotations

from math import log2
from operator import itemgetter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.cells.kernels import JoinRule, emit, join, move
from hedgerow.core.learning.trees.greedy import OpenNode
from hedgerow.core.learning.trees.kernels import (
    CutRule,
    best_cut,
    open_queries,
    select_rows,
    shortened,
    skipped,
)
from hedgerow.core.learning.truth import count, pack
from hedgerow.core.workload.query_clauses import Clauses, Lists

ROWS = (1, 2, 63, 64, 65, 127, 128, 192, 200)
randoms = st.integers(0, 2**32).map(Random)


def a_truth(random: Random, cuts: int, rows: int) -> np.ndarray:
    """Some cuts are rare, some nearly always TRUE, some never."""
    r = np.random.default_rng(random.getrandbits(32))
    often = r.choice([0.0, 0.02, 0.3, 0.5, 0.97, 1.0], (cuts, 1))
    return np.asarray(r.random((cuts, rows)) < often)


def unpacked(bits: np.ndarray, rows: int) -> np.ndarray:
    return np.array([[bool(int(word[r // 64]) >> (r % 64) & 1) for r in range(rows)] for word in bits], bool).reshape(
        len(bits), rows
    )


def some_clauses(random: Random, cuts: int, queries: int) -> Clauses:
    """Weights whose sums are all different."""
    clauses = [random.sample(range(2 * cuts), random.randint(1, min(3, 2 * cuts))) for _ in range(queries + 2)]
    needs = [random.sample(range(len(clauses)), random.randint(1, 2)) for _ in range(queries)]
    weights = [random.uniform(0.5, 4) for _ in range(queries)]
    return Clauses(Lists.of(clauses if queries else []), Lists.of(needs), np.array(weights, np.float32))


def of_query(clauses: Clauses, q: int) -> list[list[int]]:
    """The query's clauses, each its facts."""
    facts, fact_starts, needs, need_starts, _ = (a.tolist() for a in clauses.arrays)
    return [facts[fact_starts[c] : fact_starts[c + 1]] for c in needs[need_starts[q] : need_starts[q + 1]]]


def holding(some: np.ndarray, other: np.ndarray) -> np.ndarray:
    """By fact: cut i sometimes TRUE at 2 i, sometimes not at 2 i + 1."""
    return np.stack([some, other], 1).reshape(-1)


# --- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("cuts", [0, 1, 5])
def test_pack_count_and_select_rows(cuts: int, rows: int) -> None:
    random = Random(rows)
    truth = a_truth(random, cuts, rows)
    bits = pack(truth)
    assert bits.shape == (cuts, -(-rows // 64))
    assert np.array_equal(unpacked(bits, rows), truth)
    assert count(bits).tolist() == truth.sum(1).tolist()
    for c in range(cuts):
        for kept in (np.arange(cuts), np.array([c]), np.zeros(0, np.int64)):
            for is_set in (True, False):
                found = select_rows(bits[kept], np.flatnonzero(truth[c] == is_set))
                # bits beyond the last row are 0, so the packed words are the same
                assert np.array_equal(found, pack(truth[kept][:, truth[c] == is_set]))


# --- which queries are open, which cut gains ------------------------------------------------------


@given(random=randoms)
def test_shortened(random: Random) -> None:
    """On every part of the rows, the short form skips the same queries."""
    rows = random.choice(ROWS)
    truth = a_truth(random, random.randint(1, 6), rows)
    clauses = some_clauses(random, len(truth), random.randint(0, 6))
    some, other = truth.any(1), (~truth).any(1)
    queries, _ = open_queries(np.arange(len(clauses.needs)), clauses.arrays, some, other)
    short = shortened(queries, clauses.arrays, some, other)
    every = np.arange(len(queries))
    for _ in range(3):
        subset = truth[:, random.sample(range(rows), random.randint(1, rows))]
        facts = subset.any(1), (~subset).any(1), False
        assert skipped(every, short, *facts) == skipped(queries, clauses.arrays, *facts)


def slow_gains(
    truth: np.ndarray, clauses: Clauses, queries: Any, least: int, shared: float, eps: float, near: bool
) -> list[float]:
    """By cut; nothing where a side is too small, and not small enough to be kept in several blocks either."""

    def skipped(rows: np.ndarray) -> float:
        holds = holding(rows.any(1), (~rows).any(1))
        total = 0.0
        for q in queries:
            shares = [float((~holds[clause]).mean()) for clause in of_query(clauses, int(q))]
            total += float(clauses.weights[q]) * (max(shares) if near else max(shares) == 1)
        return rows.shape[1] * total

    found = []
    for cut in truth:
        gain, share = 0.0, float(cut.mean())
        small, large = sorted((cut.sum(), (~cut).sum()))
        if large >= least and (small >= least or 0 < small <= shared):
            gain = skipped(truth[:, cut]) + skipped(truth[:, ~cut])
            gain /= (eps - share * log2(share) - (1 - share) * log2(1 - share)) if eps >= 0 else 1
        found.append(gain)
    return found


@given(random=randoms)
def test_best_cut(random: Random) -> None:
    """Of queries of which nothing is excluded yet, so that what is nearer is nearer than before."""
    for _ in range(3):
        rows = random.choice(ROWS)
        truth = a_truth(random, random.randint(1, 7), rows)
        clauses = some_clauses(random, len(truth), random.randint(0, 6))
        some, other = truth.any(1), (~truth).any(1)
        cuts = np.flatnonzero(some & other)
        queries, asked = open_queries(np.arange(len(clauses.needs)), clauses.arrays, some, other)
        holds = holding(some, other)
        queries = np.array([q for q in queries if all(holds[c].all() for c in of_query(clauses, q))], np.int64)
        least, eps = random.randint(1, 5), random.choice((-1.0, 0.0, 0.1, 2.0))
        shared = random.choice((0.0, least / 2))
        node = OpenNode(pack(truth[cuts]), rows, cuts, some, other, queries, asked, ~asked)
        for near in (False, True):
            args = node, count(node.bits), queries, clauses.arrays, CutRule(least, shared, eps), near
            best, most = best_cut(*args, slice(0, len(cuts)))
            middle = random.randint(0, len(cuts))
            assert (best, most) == max(
                (best_cut(*args, own) for own in (slice(0, middle), slice(middle, len(cuts)))), key=itemgetter(1)
            )
            gains = [slow_gains(truth, clauses, queries, least, shared, eps, near)[cut] for cut in cuts]
            if best < 0:
                assert max(gains, default=0.0) <= 1e-6 * rows
            else:
                assert gains[best] == pytest.approx(max(gains))
                assert gains[best] > 0


def test_nearer_is_a_gain_only_if_asked_for() -> None:
    """cpu < 10 OR cpu > 90: either cut alone skips nothing, yet removes one side of the OR."""
    truth = np.zeros((2, 100), bool)
    truth[0, :10] = truth[1, 91:] = True
    clauses = Clauses(Lists.of([[0, 2]]), Lists.of([[0]]), np.ones(1, np.float32))
    every, yes = np.arange(1), np.ones(2, bool)
    node = OpenNode(pack(truth), 100, np.arange(2), yes, yes, every, yes, ~yes)

    def best(least: int, shared: float, near: bool) -> int:
        rule = CutRule(least, shared, -1.0)
        return best_cut(node, truth.sum(1), every, clauses.arrays, rule, near, slice(0, 2))[0]

    assert best(1, 0.0, False) == -1
    assert best(1, 0.0, True) in (0, 1)
    assert best(10, 0.0, True) == 0  # the other has a side of 9
    assert best(11, 0.0, True) == -1
    assert best(11, 9.0, True) == 1  # few enough for several blocks


# --- joining and moving ---------------------------------------------------------------------------


def some_cells(random: Random, clauses: Clauses, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r = np.random.default_rng(random.getrandbits(32))
    holds = r.random((n, len(clauses.facts))) < random.choice((0.2, 0.5, 0.8))
    may = np.array([[reads(clauses, own, q) for q in range(len(clauses.needs))] for own in holds], bool)
    may = may.reshape(n, len(clauses.needs))
    return r.uniform(1, 30, n), holds, may, may @ clauses.weights.astype(np.float64)


def reads(clauses: Clauses, holds: np.ndarray, q: int) -> bool:
    _, _, needs, starts, _ = clauses.arrays
    return bool(holds[needs[starts[q] : starts[q + 1]]].all())


def weight(clauses: Clauses, holds: np.ndarray) -> float:
    return float(sum(w for q, w in enumerate(clauses.weights.astype(np.float64)) if reads(clauses, holds, q)))


@given(random=randoms)
def test_joined_blocks_are_large_enough_and_hold_what_their_cells_do(random: Random) -> None:
    """Whatever lower bound of what pairs cost saves work."""
    clauses = some_clauses(random, 4, random.randint(0, 10))
    cells = some_cells(random, clauses, random.randint(1, 9))
    least = random.choice((10.0, 25.0, 60.0))
    either = cells[3][:, None] + cells[3] - (cells[2] * clauses.weights.astype(np.float64)) @ cells[2].T
    for bounds in (either * (1 - 1e-6), np.zeros_like(either)):
        blocks = tuple(a.copy() for a in cells)
        into = join(blocks, bounds, clauses.arrays, JoinRule(least, random.random() < 0.5))
        for b in set(into.tolist()):
            assert into[b] == b
            assert blocks[0][b] == pytest.approx(cells[0][into == b].sum())
            assert blocks[0][b] >= min(least, cells[0].sum()) - 1e-9
            assert blocks[1][b].tolist() == cells[1][into == b].any(0).tolist()
            assert blocks[3][b] == pytest.approx(weight(clauses, blocks[1][b]))


def total(clauses: Clauses, cells: Any, of: np.ndarray) -> float:
    return sum(float(cells[0][of == b].sum()) * weight(clauses, cells[1][of == b].any(0)) for b in set(of.tolist()))


@pytest.mark.long
@given(random=randoms)
def test_move_never_costs(random: Random) -> None:
    clauses = some_clauses(random, 4, random.randint(0, 8))
    n, m = random.randint(1, 14), random.randint(1, 4)
    cells = some_cells(random, clauses, n)
    of = np.array([random.randrange(min(n, m)) for _ in range(n)])
    of[: min(n, m)] = np.arange(min(n, m))
    m, least = int(of.max()) + 1, random.choice((0.0, 20.0, 50.0))
    old, sizes = of.copy(), np.bincount(of, cells[0], m)
    shapes = (m,), (m, cells[1].shape[1]), (m, cells[2].shape[1]), (m,)
    blocks = tuple(np.zeros(s, t) for s, t in zip(shapes, (float, bool, bool, float), strict=True))
    moved = move(cells, of, blocks, clauses.arrays, least)
    assert moved == (of != old).sum()
    now = np.bincount(of, cells[0], m)
    assert (now >= np.minimum(sizes, least) - 1e-9).all()
    assert (np.bincount(of, minlength=m) > 0).all()
    before, after = total(clauses, cells, old), total(clauses, cells, of)
    assert after <= before + 1e-6
    assert moved == 0 or after < before
    assert blocks[0] == pytest.approx(now)
    for b in range(m):
        assert blocks[1][b].tolist() == cells[1][of == b].any(0).tolist()
        assert blocks[3][b] == pytest.approx(weight(clauses, blocks[1][b]))


@given(random=randoms)
def test_new_blocks_never_cost(random: Random) -> None:
    clauses = some_clauses(random, 4, random.randint(1, 8))
    n, m, least = random.randint(4, 30), random.randint(1, 3), random.choice((10.0, 30.0))
    cells = some_cells(random, clauses, n)
    of = np.array([*range(m), *(random.randrange(m) for _ in range(n - m))])
    old, sizes = of.copy(), np.bincount(of, cells[0], m)
    shapes = (m + 3,), (m + 3, cells[1].shape[1]), (m + 3, cells[2].shape[1]), (m + 3,)
    blocks = tuple(np.zeros(s, t) for s, t in zip(shapes, (float, bool, bool, float), strict=True))
    used = emit(cells, of, blocks, clauses.arrays, least, n)
    now = np.bincount(of, cells[0], used)
    assert set(of.tolist()) == set(range(used))
    assert (now[:m] >= np.minimum(sizes, least) - 1e-9).all() and (now[m:] >= least).all()
    assert total(clauses, cells, of) < total(clauses, cells, old) or (used == m and (of == old).all())
    assert blocks[0][:used] == pytest.approx(now)
    for b in range(used):
        assert blocks[1][b].tolist() == cells[1][of == b].any(0).tolist()
        assert blocks[3][b] == pytest.approx(weight(clauses, blocks[1][b]))


def test_move_finds_the_block_of_its_kind() -> None:
    """Two kinds of cells, one of them astray."""
    clauses = Clauses(Lists.of([[0], [2]]), Lists.of([[0], [1]]), np.ones(2, np.float32))
    holds = np.array([[True, False]] * 3 + [[False, True]] * 3)
    cells = np.full(6, 10.0), holds, holds.copy(), np.ones(6)
    of = np.array([0, 0, 1, 1, 1, 1])
    empty = np.zeros(2), np.zeros((2, 2), bool), np.zeros((2, 2), bool), np.zeros(2)
    assert move(cells, of, empty, clauses.arrays, 20.0) == 1
    assert of.tolist() == [0, 0, 0, 1, 1, 1]
    of = np.array([0, 0, 1, 1, 1, 1])
    empty = np.zeros(2), np.zeros((2, 2), bool), np.zeros((2, 2), bool), np.zeros(2)
    assert move(cells, of, empty, clauses.arrays, 40.0) == 0  # its block would be too small
