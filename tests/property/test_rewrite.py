"""Rewriting keeps every row's truth, exactly and in three values; implication and stored forms keep what they say."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.predicates.implication import implies
from hedgerow.core.predicates.nodes import (
    NULL,
    And,
    Compare,
    CompareTerms,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Prefix,
    col,
    lit,
    walk,
)
from hedgerow.core.predicates.normal_form import negate, normalise
from hedgerow.core.predicates.predicate_json import decode_predicate, encode
from hedgerow.core.predicates.row_truth import truth
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.step_functions import not3, predicate_from_steps, stepwise
from tests.support.random_cases import OPS, a_predicate, a_table, an_atom, related, shuffled

PER_EXAMPLE = 10
cases = given(random=st.integers(0, 2**64).map(Random))


@cases
def test_normalise_changes_no_row(random: Random) -> None:
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = a_predicate(random, table, depth=4)
        for row in table.rows:
            assert truth(normalise(p), row) is truth(p, row), predicate_text(p)


@cases
def test_normalise_is_idempotent(random: Random) -> None:
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = normalise(a_predicate(random, table, depth=4))
        assert normalise(p) == p


@cases
def test_order_and_repetition_of_siblings_say_nothing(random: Random) -> None:
    """One text for all. (A literal NULL is left where it stands, so what is beside it may read differently.)"""
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = a_predicate(random, table, depth=4)
        if NULL not in walk(p):
            assert predicate_text(normalise(shuffled(random, p))) == predicate_text(normalise(p))


@cases
def test_negate_is_the_exact_opposite(random: Random) -> None:
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = a_predicate(random, table)
        for row in table.rows:
            assert truth(negate(p), row) is not3(truth(p, row)), predicate_text(p)


@cases
def test_what_is_implied_holds(random: Random) -> None:
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = a_predicate(random, table)
        q = related(random, table, p)
        for a, b in ((p, q), (normalise(p), normalise(q)), (normalise(q), normalise(p))):
            if implies(a, b):
                assert all(truth(b, row) for row in table.rows if truth(a, row)), (
                    f"{predicate_text(a)} -> {predicate_text(b)}"
                )


def test_implication_is_often_shown() -> None:
    """About one term, what holds by its values is shown: else the property above would hold for `False` too."""
    random = Random(0)
    shown = 0
    for _ in range(300):
        table = a_table(random, kinds=("int", "string", "date"))
        p = normalise(an_atom(random, table))
        q = normalise(Or((p, an_atom(random, table))))
        shown += implies(p, q)
    assert shown == 300


@cases
def test_codec_round_trip(random: Random) -> None:
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        p = a_predicate(random, table)
        again = decode_predicate(json.loads(json.dumps(encode(p))))
        assert again == p
        assert predicate_text(again) == predicate_text(p)


@cases
def test_steps_are_the_truth(random: Random) -> None:
    """A step function gives each value its truth, and the predicate written back from it means the same."""
    table = a_table(random)
    for _ in range(PER_EXAMPLE):
        term = random.choice(list(table.kinds))
        p = _about_one_term(random, [an_atom(random, table) for _ in range(40)], term)
        found = stepwise(p)
        if found is None:
            continue
        back = predicate_from_steps(found)
        for row in table.rows:
            value = row[term_text(found.term)]
            assert (found.steps.on_null if value is None else found.steps.at(value)) is truth(p, row), predicate_text(p)
            assert back is None or truth(back, row) is truth(p, row), predicate_text(p)


def _about_one_term(random: Random, found: list[Predicate], term: object) -> Predicate:
    mine = [p for p in found if getattr(p, "term", None) == term] or found[:1]
    inner = And(tuple(random.choices(mine, k=random.randint(1, 3))))
    return Or((Not(inner) if random.random() < 0.5 else inner, random.choice(mine)))


x, y, name = col("x"), col("y"), col("name")


def less(value: object) -> Predicate:
    return Compare(x, "<", lit(value))


def one_of(*values: object) -> Predicate:
    return In(x, tuple(lit(v) for v in values))


IMPLIED = [
    (less(5), less(10)),
    (less(5), Compare(x, "<=", lit(5))),
    (less(5), Compare(x, "<>", lit(5))),
    (less(5), Not(IsNull(x))),
    (one_of(1, 2), one_of(1, 2, 3)),
    (one_of(1, 2), less(3)),
    (Compare(x, "=", lit(2)), one_of(1, 2)),
    (Compare(x, "=", lit(2.0)), Compare(x, ">", lit(1.5))),
    (Compare(x, "=", lit(Decimal("2.50"))), Compare(x, "=", lit(Decimal("2.5")))),
    (Prefix(name, "abc"), Prefix(name, "ab")),
    (Prefix(name, "abc"), Compare(name, ">=", lit("abc"))),
    (Compare(name, "=", lit("abcd")), Prefix(name, "abc")),
    (And((less(5), Prefix(name, "a"))), less(10)),
    (And((Compare(x, ">=", lit(3)), Compare(x, "<=", lit(4)))), And((Compare(x, ">", lit(2)), less(5)))),
    (Or((less(3), one_of(7))), less(8)),
    (less(3), Or((less(5), IsNull(y)))),
    (And((less(3), IsNull(y))), Or((less(5), Prefix(name, "a")))),
    (CompareTerms(x, "<", y), CompareTerms(x, "<=", y)),
    (CompareTerms(x, "=", y), CompareTerms(y, ">=", x)),
    (CompareTerms(x, ">", y), CompareTerms(y, "<>", x)),
    (CompareTerms(x, "<", y), Not(IsNull(y))),
]


def _said(p: Predicate) -> str:
    return predicate_text(p)


@pytest.mark.parametrize(("p", "q"), IMPLIED, ids=_said)
def test_known_implications(p: Predicate, q: Predicate) -> None:
    assert implies(normalise(p), normalise(q))


@pytest.mark.parametrize(
    ("p", "q"),
    [
        *[(q, p) for p, q in IMPLIED if predicate_text(p) != predicate_text(q)],
        (less(5), Compare(x, "<", Literal("decimal", Decimal(10)))),  # values of two kinds have no common order
        (Compare(x, ">", lit(0.0)), Compare(x, "<=", lit(float("inf")))),  # NaN is above infinity
        (Not(less(5)), IsNull(x)),
    ],
    ids=_said,
)
def test_what_does_not_follow_is_not_shown(p: Predicate, q: Predicate) -> None:
    assert not implies(normalise(p), normalise(q))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("weaker", OPS)
def test_two_terms_imply_just_what_holds_for_all_numbers(op: str, weaker: str) -> None:
    pairs = [{"x": a, "y": b} for a in (1, 2) for b in (1, 2)]
    p, q, flipped = CompareTerms(x, op, y), CompareTerms(x, weaker, y), CompareTerms(y, weaker, x)
    assert implies(p, q) is all(truth(q, row) for row in pairs if truth(p, row))
    assert implies(p, flipped) is all(truth(flipped, row) for row in pairs if truth(p, row))


def test_equal_sides_are_equal_predicates() -> None:
    """Two ways to say the same have one text, which is the identity of a feature."""
    same = [
        (Not(less(5)), Compare(x, ">=", lit(5))),
        (Or((Compare(x, "=", lit(1)), one_of(2, 1))), one_of(1, 2)),
        (And((less(5), less(3), Compare(x, "<>", lit(9)))), less(3)),
        (And((Compare(name, ">=", lit("ab")), Compare(name, "<", lit("ac")))), Prefix(name, "ab")),
        (CompareTerms(y, ">", x), CompareTerms(x, "<", y)),
        (Not(And((Not(less(3)), Not(IsNull(y))))), Or((IsNull(y), less(3)))),
        (Or((And((less(1), less(1))), less(5))), less(5)),
        (Not(Not(Prefix(name, "a"))), Prefix(name, "a")),
    ]
    for p, q in same:
        assert predicate_text(normalise(p)) == predicate_text(normalise(q))
