"""Choosing features: as 7.3 of the qd-tree paper does, by hand; and by what they skip, query by query."""

from __future__ import annotations

from random import Random

from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import And, Compare, Or, lit
from hedgerow.core.predicates.normal_form import normalise
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.learners.sop.bottom_up import BottomUp
from hedgerow.learners.sop.features import Frequent, frequent, implied
from tests.support.feature_problem import X2, X5, X9, Y1, Z1, problem, x, z
from tests.support.random_cases import a_predicate, a_table, bits, related, seeds


def chosen(p: Problem, most: int = 15, threshold: float = 0.0, widest: float = 1.0) -> Frequent:
    return frequent(p, most, threshold, widest, range(len(p.cuts)))


def names(p: Problem, found: Frequent) -> list[str]:
    return [predicate_text(p.cuts[c]) for c in found.cuts]


def test_one_by_one() -> None:
    """Served at first: x < 9 by Q1 to Q4, y = 1 by Q3, Q4, Q5, z = 1 by Q6; x < 5 (Q2 to Q4) and x < 2 (Q4) are below
    x < 9. It is chosen, so y = 1 has Q5 left, x < 5 and x < 2 nothing. Of y = 1 and z = 1, with one query each, the
    first in the order of cuts comes first. All of their queries are what they are weighed by."""
    p = problem()
    found = chosen(p)
    assert names(p, found) == ["x < 9", "y = 1", "z = 1"]
    assert found.serves.tolist() == [4, 3, 1]
    assert found.named.tolist() == [1, 3, 1]


def test_more_general_features_come_first_even_if_others_are_as_frequent() -> None:
    p = problem((And((X2, Y1)), And((X2, Z1)), X5))
    assert names(p, chosen(p)) == ["x < 5"]


def test_the_threshold_and_the_limit() -> None:
    p = problem()
    assert names(p, chosen(p, most=2)) == ["x < 9", "y = 1"]
    assert names(p, chosen(p, threshold=0.2)) == ["x < 9"]  # what is left of the others is one query of six
    assert names(p, chosen(p, threshold=0.7)) == []


def test_predicates_of_many_rows_are_ignored_when_tuned() -> None:
    """x < 9 no longer stands for the others: Q2 to Q4 choose x < 5, and y = 1 is too wide as well."""
    p = problem()
    assert names(p, chosen(p, widest=0.25)) == ["x < 5", "z = 1"]
    assert names(p, chosen(p, widest=0.1)) == ["x < 2"]
    assert BottomUp(tuned=True).fit(p).predicates == (X2,)


def test_what_holds_on_no_row_divides_nothing() -> None:
    p = problem((Compare(x, ">", lit(50)), X5))
    assert names(p, chosen(p)) == ["x < 5"]


def test_equal_meanings_are_one_feature() -> None:
    """Each of the two makes sure of the other, whatever their texts."""
    either = Or((And((X5, Y1)), And((X5, Z1))))
    p = problem((either, And((X5, Or((Y1, Z1))))), cuts="atoms+subtrees")
    found = chosen(p)
    assert len(found.cuts) == 1
    assert found.serves.tolist() == [2]


def test_conjunctions_are_features_where_they_are_cuts() -> None:
    p = problem((And((X9, Y1)), And((X9, Y1, Z1))), cuts="atoms+subtrees")
    both = next(i for i, cut in enumerate(p.cuts) if predicate_text(cut) == "x < 9 AND y = 1")
    found = frequent(p, 15, 0.0, 1.0, [both])
    assert found.serves.tolist() == [2]
    assert found.named.tolist() == [2]


def test_weights_count() -> None:
    p = problem((X5, Y1), weights=(1.0, 3.0))
    assert names(p, chosen(p)) == ["y = 1", "x < 5"]


def test_subsumption_is_as_pair_by_pair() -> None:
    """All at once finds what `implies` does, but for conditions that hold nowhere."""
    missed = found = 0
    for random in seeds(0, 80):
        table = a_table(random)
        these = [normalise(a_predicate(random, table, 2)) for _ in range(6)]
        those = [normalise(related(random, table, p)) for p in these] + these
        at_once = implied(these, those)
        for i, p in enumerate(these):
            sure = bits(p, table) == 2
            for k, q in enumerate(those):
                assert not at_once[i, k] or (bits(q, table) == 2)[sure].all(), (predicate_text(p), predicate_text(q))
                missed += bool(sure.any()) and implies(p, q) and not at_once[i, k]
                found += bool(at_once[i, k])
    assert found > 300
    assert missed <= 0.01 * found


def by_reading(p: Problem, most: int, least: float) -> list[str]:
    """The same choice, query by query and row by row."""
    rows, truth = range(p.truth.rows), p.truth[:]
    serves = implied([normalise(q) for q in p.predicates], p.cuts)
    whole = sum(p.weights) * len(rows)
    found: list[int] = []

    def read(chosen: list[int]) -> float:
        return sum(
            weight * sum(all(truth[c, row] for c in chosen if serves[q, c]) for row in rows)
            for q, weight in enumerate(p.weights)
        )

    able = [c for c in range(len(p.cuts)) if p.truth.counts[c] and serves[:, c].any()]
    while len(found) < most and able:
        best = min(able, key=lambda c: round(read([*found, c]), 6))
        if read(found) - read([*found, best]) < max(least, 1e-9) * whole:
            break
        found.append(best)
    return [predicate_text(p.cuts[c]) for c in found]


def test_features_that_skip_most_rows() -> None:
    random = Random(5)
    chosen_in_all = 0
    for _ in range(60):
        asked = tuple(And(tuple(random.sample((X9, X5, X2, Y1, Z1), random.randint(2, 3)))) for _ in range(6))
        p = problem(asked, weights=tuple(random.choice((1.0, 2.5)) for _ in asked))
        most, least = random.randint(1, 4), random.choice((0.0, 0.03))
        found = names(p, frequent(p, most, least, 1.0, range(len(p.cuts)), skip=True))
        assert found == by_reading(p, most, least)
        chosen_in_all += len(found)
    assert chosen_in_all > 100


def test_a_wide_condition_of_every_query_does_not_take_all() -> None:
    """As on logs: `NOT z = 1` is in all queries and holds on 16 of 20 rows."""
    valid = Compare(z, "<>", lit(1))
    p = problem((And((valid, X2)), And((valid, Y1)), And((valid, X5))))
    assert names(p, chosen(p)) == ["z <> 1"]
    layout = BottomUp().fit(p)
    assert {predicate_text(f) for f in layout.predicates} >= {"x < 5", "y = 1"}
    assert layout.blocks > 1
