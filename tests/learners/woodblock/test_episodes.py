"""Trees grown in lockstep against one grown slowly: which cuts are legal, what is rewarded, what the network sees."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.layouts.tree import allowed_by
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.trees.greedy import tree_of
from hedgerow.core.predicates.nodes import Compare, CompareTerms, Predicate, col, lit
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import stepwise
from hedgerow.learners.woodblock.episodes import Choices, Episodes, Forest, Policy, State
from hedgerow.learners.woodblock.region_bits import Pieces
from tests.support.tree_problems import Slow, a_problem, walked

randoms = st.integers(0, 2**32).map(Random)
x, y = col("x"), col("y")


def at_random(seed: int) -> Policy:
    """Any legal cut."""
    r = np.random.default_rng(seed)

    def policy(state: State) -> Choices:
        cut = np.array([r.choice(np.flatnonzero(legal)) for legal in state.legal], np.int64)
        return Choices(cut, np.zeros(len(cut)), np.zeros(len(cut)))

    return policy


def problems(random: Random) -> tuple[Problem, Slow, int]:
    table, problem = a_problem(random)
    return problem, Slow(table.rows, problem), len(table)


def inside(slow: Slow, path: list[tuple[Predicate, bool]], rows: int) -> frozenset[int]:
    here = frozenset(range(rows))
    for cut, left in path:
        here = slow.sides(cut, here)[0 if left else 1]
    return here


# --- growing --------------------------------------------------------------------------------------


@given(random=randoms)
def test_masks_and_rewards(random: Random) -> None:
    problem, slow, rows = problems(random)
    grown = Forest.of(problem, slow.least).grown(at_random(random.getrandbits(32)), 3)
    weight = sum(problem.weights)
    false = never(problem, slow, rows)
    for tree in range(3):
        layout = tree_of(problem, grown.nodes(tree))
        leaves = [here for here, cut in walked(layout, slow, rows) if cut is None]
        assert grown.total[tree] == pytest.approx(sum(map(slow.skipped, leaves)) - false * rows)
        assert len(layout.nodes) == (grown.tree == tree).sum()
        assert not any(legal_cuts(slow, here) for here in leaves)
    for at in range(len(grown.tree)):
        here = inside(slow, path(grown, at, problem), rows)
        assert grown.rows[at] == len(here)
        assert set(np.flatnonzero(grown.state.legal[at])) == {problem.cuts.index(c) for c in legal_cuts(slow, here)}
        skipped = saved(grown, at, slow, problem, here) / len(here) - false
        assert grown.reward[at] == pytest.approx(skipped / weight)


def path(grown: Episodes, at: int, problem: Problem) -> list[tuple[Predicate, bool]]:
    """The cuts above a decision, with the sides taken."""
    above = int(grown.parent[at])
    if above < 0:
        return []
    return [*path(grown, above, problem), (problem.cuts[grown.choices.cut[above]], bool(grown.left[at]))]


def never(problem: Problem, slow: Slow, rows: int) -> float:
    """The weight of the queries that match nothing, whatever the rows: clauses leave them out."""
    true = problem.truth[:]
    known = problem.clauses.skipped(true.any(axis=1)[None], (~true).any(axis=1)[None])
    return slow.skipped(frozenset(range(rows))) / rows - float(known[0])


def legal_cuts(slow: Slow, here: frozenset[int]) -> list[Predicate]:
    return [cut for cut in slow.cuts if slow.gain(cut, here) is not None]


def saved(grown: Episodes, at: int, slow: Slow, problem: Problem, here: frozenset[int]) -> float:
    """What is skipped below a decision, from its two sides."""
    total = 0.0
    for is_left, own in zip((True, False), slow.sides(problem.cuts[grown.choices.cut[at]], here), strict=True):
        (*kids,) = np.flatnonzero((grown.parent == at) & (grown.left == is_left))
        total += saved(grown, kids[0], slow, problem, own) if kids else slow.skipped(own)
    return total


def test_many_rows_are_counted_without_overflow() -> None:
    """More than 255 rows on the smaller side, and more than eight cuts."""
    table = pa.table({"x": list(range(3000))})
    queries = tuple(Compare(x, "<", lit(v)) for v in range(100, 3000, 100))
    problem = Problem.build(Sample.of_table(table), queries, 50)
    grown = Forest.of(problem, 50).grown(at_random(0), 2)
    assert grown.rows.max() == 3000
    for tree in range(2):
        sizes = np.bincount(tree_of(problem, grown.nodes(tree)).assign(problem.sample.rows))
        assert sizes.tolist() == [100] * 30  # any order of all cuts


# --- what the network sees ------------------------------------------------------------------------

CUTS = (Compare(x, "<", lit(5)), Compare(x, "<", lit(9)), Compare(y, "=", lit("b")), CompareTerms(x, "<", col("z")))


def region(pieces: Pieces, *path: tuple[int, bool]) -> np.ndarray:
    found = np.ones((1, pieces.sides.shape[2]), bool)
    for cut, left in path:
        found &= pieces.sides[0 if left else 1, cut]
    return found


@pytest.mark.parametrize(
    ("path", "low", "high", "marks"),
    [
        ((), 0, 2, "11111"),
        (((0, True),), 0, 0, "11111"),
        (((1, True), (0, False)), 1, 1, "11111"),
        (((1, False),), 2, 2, "11111"),
        (((2, True),), 0, 2, "01001"),
        (((2, False), (3, False)), 0, 2, "10110"),
    ],
)
def test_features(path: tuple[tuple[int, bool], ...], low: int, high: int, marks: str) -> None:
    """Of x the first and the last of three pieces, two bits each; of y the values below b, b, above, NULL; x < z."""
    pieces = Pieces.of(CUTS)
    found = pieces.features(region(pieces, *path))[0]
    assert len(found) == pieces.width == 9
    assert "".join("01"[int(bit)] for bit in found[:5]) == marks
    assert found[5:].tolist() == [bool(end >> i & 1) for end in (low, high) for i in range(2)]


@given(random=randoms)
def test_regions_are_what_the_path_allows(random: Random) -> None:
    """The same cuts on the way give the same steps of each term as the tree itself promises for its leaves."""
    problem, _, _ = problems(random)
    pieces = Pieces.of(problem.cuts)
    path = tuple((random.randrange(len(problem.cuts)), random.random() < 0.5) for _ in range(3 if problem.cuts else 0))
    allowed = allowed_by(problem.cuts, path)
    found = region(pieces, *path)[0]
    at = 0
    terms: dict[tuple[str, str], set] = {}
    for s in map(stepwise, problem.cuts):
        if s is not None:
            terms.setdefault((term_text(s.term), s.kind or ""), set()).update(s.steps.breaks)
    of_term = {(term_text(term), kind or ""): s for (term, kind), s in allowed.items()}
    for key in sorted(terms):
        starts = sorted(terms[key])
        own = found[at : at + len(starts) + 2]
        if key in of_term:
            steps = of_term[key].steps
            through = [steps.outcomes[sum(b <= start for b in steps.breaks)] is True for start in starts]
            assert own.tolist() == [steps.outcomes[0] is True, *through, steps.on_null is True]
        else:
            assert own.all()
        at += len(starts) + 2
    assert len(found) - at == 2 * sum(stepwise(cut) is None for cut in problem.cuts)
