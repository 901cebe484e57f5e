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
from hedgerow.learners.woodblock.episodes import RATIO_EPS, Choices, Episodes, Forest, OpenNodes, Policy, following
from hedgerow.learners.woodblock.region_bits import Pieces
from tests.support.tree_problems import Slow, a_problem, sampled, walked

randoms = st.integers(0, 2**32).map(Random)
x, y = col("x"), col("y")


def at_random(seed: int, stop: float = 0.0) -> Policy:
    """Any legal cut; some nodes are left as they are."""
    r = np.random.default_rng(seed)

    def policy(seen: OpenNodes) -> Choices:
        cut = np.array([r.choice(np.flatnonzero(legal)) for legal in seen.state.legal], np.int64)
        cut[r.random(len(cut)) < stop] = -1
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
    for stop in (0.0, 0.2):
        problem, slow, rows = problems(random)
        forest = Forest.of(problem, slow.least, False)
        grown = forest.grown(at_random(random.getrandbits(32), stop), forest.root(3))
        weight = sum(problem.weights)
        false = never(problem, slow, rows)
        for tree in range(3):
            layout = tree_of(problem, grown.nodes(tree))
            leaves = [here for here, cut in walked(layout, slow, rows) if cut is None]
            assert grown.total[tree] == pytest.approx(sum(map(slow.skipped, leaves)) - false * rows)
            assert len(layout.nodes) == (grown.tree == tree).sum()
            if not stop:
                assert not any(legal_cuts(slow, here) for here in leaves)
        for at in range(len(grown.tree)):
            path = [(problem.cuts[c], left) for c, left in reversed(grown.path(at))]
            here = inside(slow, path, rows)
            assert grown.rows[at] == len(here)
            assert set(np.flatnonzero(grown.state.legal[at])) == {problem.cuts.index(c) for c in legal_cuts(slow, here)}
            skipped = saved(grown, at, slow, problem, here) / len(here) - false
            assert grown.reward[at] == pytest.approx(skipped / weight)


def never(problem: Problem, slow: Slow, rows: int) -> float:
    """The weight of the queries that match nothing, whatever the rows: clauses leave them out."""
    true = problem.truth
    known = problem.clauses.skipped(true.any(axis=1)[None], (~true).any(axis=1)[None])
    return slow.skipped(frozenset(range(rows))) / rows - float(known[0])


def legal_cuts(slow: Slow, here: frozenset[int]) -> list[Predicate]:
    return [cut for cut in slow.cuts if slow.gain(cut, here) is not None]


def saved(grown: Episodes, at: int, slow: Slow, problem: Problem, here: frozenset[int]) -> float:
    """What is skipped below a decision, from its two sides."""
    total = 0.0
    for kid, own in zip(grown.kids[at], slow.sides(problem.cuts[grown.choices.cut[at]], here), strict=True):
        total += saved(grown, kid, slow, problem, own) if kid >= 0 else slow.skipped(own)
    return total


@given(random=randoms)
def test_only_cuts_that_are_asked_for(random: Random) -> None:
    """They are legal ones, and a tree of them counts the same where all cuts may be taken."""
    problem, slow, rows = problems(random)
    plain, asked = (Forest.of(problem, slow.least, only) for only in (False, True))
    grown = asked.grown(at_random(random.getrandbits(32)), asked.root(2))
    for at in range(len(grown.tree)):
        path = [(problem.cuts[c], left) for c, left in reversed(grown.path(at))]
        here = inside(slow, path, rows)
        legal = {problem.cuts.index(c) for c in legal_cuts(slow, here)}
        assert set(np.flatnonzero(grown.state.legal[at])) <= legal
    assert plain.grown(following(grown.nodes(0)), plain.root(1)).total[0] == pytest.approx(grown.total[0])


@given(random=randoms)
def test_gain_ratios(random: Random) -> None:
    """Of each cut by itself: the rows on which a clause that needs it could not hold, its part of the queries' weight."""
    problem, slow, rows = problems(random)
    forest = Forest.of(problem, slow.least, False, True)
    grown = forest.grown(at_random(random.getrandbits(32)), forest.root(1))
    clauses = problem.clauses
    facts = [own.tolist() for own in np.split(clauses.facts.items, clauses.facts.starts[1:])]
    needs = [own.tolist() for own in np.split(clauses.needs.items, clauses.needs.starts[1:])]
    for at in range(len(grown.tree)):
        here = inside(slow, [(problem.cuts[c], left) for c, left in reversed(grown.path(at))], rows)
        true = problem.truth[:, sorted(here)].sum(axis=1)
        holds = [[n, len(here) - n] for n in true.tolist()]  # of each cut's two facts, on how many rows
        of_clause = [[holds[f >> 1][f & 1] for f in own] for own in facts]
        is_open = [
            all(any(of_clause[c]) for c in own) and not all(len(here) in of_clause[c] for c in own) for own in needs
        ]
        total = sum(w for w, yes in zip(clauses.weights.tolist(), is_open, strict=True) if yes)
        found = np.zeros(len(problem.cuts))
        for w, yes, own in zip(clauses.weights.tolist(), is_open, needs, strict=True):
            for c in own:
                if yes and len(here) not in of_clause[c]:
                    for fact, n in zip(facts[c], of_clause[c], strict=True):
                        found[fact >> 1] += (n > 0) * w * (len(here) - n) / sum(x > 0 for x in of_clause[c])
        for c in np.flatnonzero(found):
            p = true[c] / len(here)
            found[c] /= total * len(here) * (RATIO_EPS - p * np.log2(p) - (1 - p) * np.log2(1 - p))
        assert np.allclose(grown.state.ratios[at], found, rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_trees_grow_again_below_a_node(seed: int) -> None:
    """Following a tree gives that tree, and what grows below a node of it fits into its place."""
    _, problem = sampled(seed)
    forest = Forest.of(problem, problem.sample_block_rows, False)
    grown = forest.grown(at_random(seed), forest.root(3))
    again = forest.grown(following(grown.nodes(1)), forest.root(1))
    assert again.nodes(0) == grown.nodes(1)
    assert again.total[0] == pytest.approx(grown.total[1])
    for at in range(0, len(again.tree), 1 + len(again.tree) // 5):
        part = forest.grown(at_random(seed + 1, 0.1), forest.below(again.path(at), 4))
        for tree in range(4):
            other = forest.grown(following(again.nodes(0, at, part.nodes(tree))), forest.root(1))
            assert other.total[0] - again.total[0] == pytest.approx(part.total[tree] - again.saved[at], abs=1e-6)
            tree_of(problem, other.nodes(0))  # leaves are numbered without a gap:
            leaves = [kid for _, *kids in again.nodes(0, at, part.nodes(tree)) for kid in kids if kid < 0]
            assert sorted(leaves, reverse=True) == [~i for i in range(len(leaves))]


def test_many_rows_are_counted_without_overflow() -> None:
    """More than 255 rows on the smaller side, and more than eight cuts."""
    table = pa.table({"x": list(range(3000))})
    queries = tuple(Compare(x, "<", lit(v)) for v in range(100, 3000, 100))
    problem = Problem.build(Sample.of_table(table), queries, 50)
    forest = Forest.of(problem, 50, False)
    grown = forest.grown(at_random(0), forest.root(2))
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
