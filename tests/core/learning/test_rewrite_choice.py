"""A rewrite that does not pay is never chosen, one that pays much always is, and no estimate breaks the bounds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.rewrite_choice import Facts, Limits, choose

GB = float(1 << 30)


def facts(r: Random, saved: float) -> Facts:
    """A table of some size; all its queries together save `saved` times what a rewrite of it takes."""
    size, rate = r.uniform(1, 5000) * GB, r.uniform(1e-9, 1e-7)
    queries, then = r.randrange(10, 100_000), r.uniform(0.1, 5)
    return Facts(size, size, queries, then + saved * size * rate / queries, then, rate)


@pytest.mark.parametrize("seed", range(20))
def test_never_if_it_costs_more_than_it_saves(seed: int) -> None:
    r = Random(seed)
    found = choose(facts(r, r.uniform(-1, 1)))
    assert found.action == "nothing" and found.gain <= found.cost


@pytest.mark.parametrize("seed", range(20))
def test_always_if_it_saves_much(seed: int) -> None:
    r = Random(seed)
    found = choose(facts(r, r.uniform(3, 30)))
    assert found.action == "whole table" and found.gain > 2 * found.cost


def test_a_table_of_50_mb_is_left_alone() -> None:
    small = Facts(50 << 20, 50 << 20, 1e6, 5.0, 0.1, 1e-9)
    assert choose(small).action == "nothing" and "50.0 MB" in choose(small).reasons[0]


def test_a_small_append_never_rewrites_a_big_table() -> None:
    """1 GB beside 40 GB that are laid out well: only the new files."""
    found = choose(Facts(41 * GB, GB, 10_000, 1.2, 0.99, 1e-8, sorted_in=1.0))
    assert found.action == "new files" and found.cost == pytest.approx(GB * 1e-8)
    drifted = choose(Facts(41 * GB, GB, 10_000, 9.0, 0.5, 1e-8, sorted_in=8.9))
    assert drifted.action == "whole table"  # not because of the append


def test_a_table_of_new_files_only_is_the_whole_table() -> None:
    """So it is after a rewrite that was killed just before its commit: there is an index, of none of its files."""
    found = choose(Facts(GB, GB, 1e6, 5.0, 1.0, 1e-9, sorted_in=1.0))
    assert found.action == "whole table" and len(found.reasons) == 1


def test_no_row_moves_where_only_knowledge_is_missing() -> None:
    same = Facts(10 * GB, 0.0, 1000, 5.0, 1.0, 1e-8, described=1.0)
    assert choose(same).action == "statistics"
    better = Facts(10 * GB, 0.0, 1000, 5.0, 0.5, 1e-8, described=1.0)
    assert choose(better).action == "whole table"
    assert choose(Facts(10 * GB, 0.0, 1000, 5.0, 4.9, 1e-6, described=float("inf"))).action == "nothing"


seconds = st.floats(0, 100)
sizes = st.floats(0, 1e15)


@given(
    *(sizes, st.floats(0, 1), st.floats(0, 1e6), seconds, seconds, seconds, seconds),
    *(st.floats(1e-12, 1e-3), st.floats(0, 5)),
)
def test_bounds_hold_whatever_is_estimated(
    size: float,
    new: float,
    queries: float,
    now: float,
    then: float,
    sorted_in: float,
    described: float,
    rate: float,
    before: float,
) -> None:
    limits = Limits()
    known = Facts(size, new * size, queries, now, then, rate, sorted_in, described, before * size, days_since_whole=0.5)
    found = choose(known, limits)
    amount = {"nothing": 0.0, "statistics": 0.0, "new files": new * size, "whole table": size}[found.action]
    assert found.action != "whole table"  # it was rewritten half a day ago
    assert not amount or before * size + amount <= limits.rewrites * size
    if found.action != "nothing":
        assert found.gain >= limits.margin * found.cost and size >= limits.least_bytes
    assert found.reasons


def test_money() -> None:
    facts = Facts(size=1e9, new_bytes=1e9, queries=900, now=3.0, then=1.0, rate=1e-7, fixed=80.0, price=20.0)
    choice = choose(facts)
    assert choice.reasons == ("whole table: saves 1,800 s (10.00) in 900 queries, and takes 180 s (1.00)",)
    assert (choice.gain, choice.cost) == (1800.0, 180.0)
