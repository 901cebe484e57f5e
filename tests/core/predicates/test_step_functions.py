"""Step functions drawn and read: where a predicate is TRUE along the line of a term's values."""

from __future__ import annotations

import pytest

from hedgerow.core.predicates.nodes import And, Compare, Const, In, IsNull, Not, Or, Predicate, Prefix, col, lit
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.step_functions import predicate_from_steps, stepwise
from hedgerow.core.predicates.values import NAN, prefix_end

x, name = col("x"), col("name")


def at_least(v: object) -> Predicate:
    return Compare(x, ">=", lit(v))


def below(v: object) -> Predicate:
    return Compare(x, "<", lit(v))


def drawn(p: Predicate) -> str:
    """The truth from 0 to 9, and for NULL.

    0123456789
    """
    found = stepwise(p)
    assert found is not None
    sign = {True: "=", False: "-", None: "?"}
    return "".join(sign[found.steps.at(v)] for v in range(10)) + " " + sign[found.steps.on_null]


@pytest.mark.parametrize(
    ("p", "picture"),
    [
        (below(5), "=====----- ?"),
        (Compare(x, "<=", lit(5)), "======---- ?"),
        (Compare(x, "<>", lit(5)), "=====-==== ?"),
        (In(x, (lit(7), lit(2), lit(7))), "--=----=-- ?"),
        (In(x, ()), "---------- ?"),
        (IsNull(x), "---------- ="),
        (And((at_least(3), below(6))), "---===---- ?"),
        (Or((below(3), at_least(6), IsNull(x))), "===---==== ="),
        (And((at_least(3), Const(None))), "---??????? ?"),
        (Or((below(3), Const(None))), "===??????? ?"),
        (And((at_least(6), below(3))), "---------- ?"),
        (Not(Or((below(3), IsNull(x)))), "---======= -"),
    ],
    ids=str,
)
def test_pictures(p: Predicate, picture: str) -> None:
    assert drawn(p) == picture


@pytest.mark.parametrize(
    ("p", "shortest"),
    [
        (And((at_least(3), at_least(5), below(9), Compare(x, "<>", lit(20)))), "x >= 5 AND x < 9"),
        (And((at_least(3), below(4), Compare(x, "<=", lit(3)))), "x = 3"),
        (Or((below(3), Compare(x, ">", lit(3)))), "x <> 3"),
        (Or((below(3), at_least(3))), "NOT (x <> x)"),
        (Or((below(3), at_least(3), IsNull(x))), "TRUE"),
        (And((In(x, (lit(1), lit(5), lit(9))), at_least(4))), "x IN (5, 9)"),
        (And((Prefix(name, "ab"), Prefix(name, "abc"))), "startswith(name, 'abc')"),
        (And((Compare(name, ">=", lit("ab")), Compare(name, "<", lit("ac")))), "startswith(name, 'ab')"),
        (Not(Not(Prefix(name, "ab"))), "startswith(name, 'ab')"),
    ],
    ids=str,
)
def test_the_shortest_predicate_with_these_steps(p: Predicate, shortest: str) -> None:
    found = stepwise(p)
    assert found is not None
    back = predicate_from_steps(found)
    assert back is not None and predicate_text(back) == shortest


def test_two_terms_or_two_kinds_have_no_common_line() -> None:
    assert stepwise(And((below(3), Compare(col("y"), "<", lit(3))))) is None
    assert stepwise(And((below(3), below(3.5)))) is None


def test_nan_lies_above_infinity() -> None:
    above = stepwise(Compare(x, ">", lit(float("inf"))))
    assert above is not None
    assert above.steps.at(NAN) is True
    assert above.steps.at(float("inf")) is False


@pytest.mark.parametrize("prefix", ["a", "a\U0010ffff", "\ud7ff", "z\uffff", "é"])
def test_the_end_of_a_prefix_is_just_above_all_that_start_with_it(prefix: str) -> None:
    end = prefix_end(prefix)
    assert end is not None
    assert prefix < prefix + "\U0010ffff" * 3 < end
    assert not end.startswith(prefix)
    end.encode()  # a lone surrogate is no character and could not be written


def test_nothing_is_above_the_greatest_prefix() -> None:
    assert prefix_end("\U0010ffff") is None
    assert prefix_end("") is None
