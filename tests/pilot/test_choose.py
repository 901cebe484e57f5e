"""A rewrite that does not pay is never chosen, one that pays much always is, and no estimate breaks the bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.pilot.choose import choose, worth_moving
from hedgerow.pilot.decision import Figures
from hedgerow.pilot.settings import AutopilotSettings

GB = float(1 << 30)


def some_figures(r: Random, saved: float) -> Figures:
    """A table of some size; all its queries together save `saved` times what a rewrite of it takes."""
    size, rate = r.uniform(1, 5000) * GB, r.uniform(1e-9, 1e-7)
    queries, then = r.randrange(10, 100_000), r.uniform(0.1, 5)
    return Figures(size, size, queries, then + saved * size * rate / queries, then, rate)


@pytest.mark.parametrize("seed", range(20))
def test_never_if_it_costs_more_than_it_saves(seed: int) -> None:
    r = Random(seed)
    found = choose(some_figures(r, r.uniform(-1, 1)))
    assert found.action == "nothing" and found.gain <= found.cost


@pytest.mark.parametrize("seed", range(20))
def test_always_if_it_saves_much(seed: int) -> None:
    r = Random(seed)
    found = choose(some_figures(r, r.uniform(3, 30)))
    assert found.action == "whole table" and found.gain > 2 * found.cost


def test_a_table_of_50_mb_is_left_alone() -> None:
    small = Figures(50 << 20, 50 << 20, 1e6, 5.0, 0.1, 1e-9)
    assert choose(small).action == "nothing" and "50.0 MB" in choose(small).reasons[0]


def test_a_small_append_never_rewrites_a_big_table() -> None:
    """1 GB beside 40 GB that are laid out well: only the new files."""
    sizes, seconds = np.full(41, GB), np.r_[np.full(40, 0.01), 0.2]
    part = worth_moving(seconds, sizes, np.ones(41, bool), 10_000, 1e-7)
    assert part.tolist() == [False] * 40 + [True]
    found = choose(Figures(41 * GB, GB, 10_000, 1.2, 1.0, 1e-7, "new files"))
    assert found.action == "new files" and found.cost == pytest.approx(GB * 1e-7)
    drifted = worth_moving(seconds + 0.2, sizes, np.ones(41, bool), 10_000, 1e-7)
    assert drifted.all()  # not because of the append
    assert choose(Figures(41 * GB, 41 * GB, 10_000, 9.0, 0.5, 1e-7)).action == "whole table"
    few = choose(Figures(GB, 1 << 20, 10_000, 1.2, 1.0, 1e-7, "new files"))
    assert few.action == "nothing" and "1.0 MB of new files wait for more" in few.reasons[0]


def test_files_of_which_queries_read_most_are_laid_out_alone() -> None:
    """Queries for the last days: the old files are not worth a rewrite."""
    sizes, seconds = np.full(10, GB), np.r_[np.full(8, 0.001), 1.0, 2.0]
    worth = partial(worth_moving, seconds, sizes, queries=1000, rate=1e-7)
    assert np.flatnonzero(worth(np.ones(10, bool))).tolist() == [8, 9]
    assert np.flatnonzero(worth(np.ones(10, bool), settings=AutopilotSettings(most_bytes=1.5 * GB))).tolist() == [9]
    assert np.flatnonzero(worth(np.arange(10) != 9)).tolist() == [8]  # the worst was moved a moment ago
    assert np.flatnonzero(worth(np.ones(10, bool), left=0.9)).tolist() == [9]
    found = choose(Figures(10 * GB, 2 * GB, 1000, 3.2, 0.7, 1e-7))
    assert found.action == "worst files"
    assert found.reasons == ("worst files, 2.0 GB of 10.0 GB: saves 2,500 s in 1,000 queries, and takes 215 s",)


def test_a_forbidden_rewrite_has_its_gain_and_cost() -> None:
    figures = Figures(GB, GB, 10_000, 9.0, 1.0, 1e-7, days_since_whole=0.5)
    found = choose(figures)
    assert found.action == "nothing" and "0.5 days ago" in found.reasons[0]
    assert found.gain == 80_000.0 and found.gain > AutopilotSettings().margin * found.cost > 0


def test_a_table_of_new_files_only_is_the_whole_table() -> None:
    """So it is after a rewrite that was killed just before its commit: there is an index, of none of its files."""
    found = choose(Figures(GB, GB, 1e6, 5.0, 1.0, 1e-9, "new files"))
    assert found.action == "whole table" and len(found.reasons) == 1


def test_no_row_moves_where_only_statistics_are_missing() -> None:
    same = Figures(10 * GB, 10 * GB, 1000, 5.0, 1.0, 1e-8, seconds_described=1.0)
    assert choose(same).action == "statistics"
    better = Figures(10 * GB, 10 * GB, 1000, 5.0, 0.5, 1e-8, seconds_described=1.0)
    assert choose(better).action == "whole table"
    assert choose(Figures(10 * GB, 10 * GB, 1000, 5.0, 4.9, 1e-6, seconds_described=float("inf"))).action == "nothing"


seconds = st.floats(0, 100)
sizes = st.floats(0, 1e15)


@given(
    *(sizes, st.floats(0, 1), st.floats(0, 1e6), seconds, seconds, seconds),
    *(st.floats(1e-12, 1e-3), st.sampled_from(["new files", "small files", "worst files"]), st.floats(0, 5)),
)
def test_bounds_hold_whatever_is_estimated(
    size: float,
    share: float,
    queries: float,
    now: float,
    then: float,
    described: float,
    rate: float,
    action: str,
    before: float,
) -> None:
    settings, part = AutopilotSettings(), share * size
    known = Figures(size, part, queries, now, then, rate, action, described, before * size, days_since_whole=0.5)
    found = choose(known, settings)
    amount = 0.0 if found.action in ("nothing", "statistics") else part
    assert found.action != "new files" or (action == "new files" and part >= settings.least_new)
    assert found.action != "whole table"  # it was rewritten half a day ago
    assert not amount or before * size + amount <= settings.rewrites * size
    if found.action != "nothing":
        assert found.gain >= settings.margin * found.cost and size >= settings.least_bytes
    assert found.reasons


def test_money() -> None:
    figures = Figures(1e9, 1e9, 900, 3.0, 1.0, 1e-7, fixed_seconds=80.0, price=20.0)
    wide = choose(replace(figures, spread=3.0))
    assert wide.reasons == ("whole table: saves 1,800 s (10.00) in 900 queries, and takes 60 to 540 s (1.00)",)
    choice = choose(figures)
    assert choice.reasons == ("whole table: saves 1,800 s (10.00) in 900 queries, and takes 180 s (1.00)",)
    assert (choice.gain, choice.cost) == (1800.0, 180.0)


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(1, 1e12), st.booleans()), min_size=1, max_size=12),
    *(st.floats(0, 1e5), st.floats(1e-12, 1e-6), st.floats(0, 1), st.floats(0, 1e12)),
)
def test_files_to_move_are_movable_within_the_budget_and_pay(
    files: list[tuple[float, float, bool]], queries: float, rate: float, left: float, most: float
) -> None:
    seconds, sizes, movable = (np.array(values) for values in zip(*files, strict=True))
    settings = AutopilotSettings(most_bytes=most)
    part = worth_moving(seconds, sizes, movable, queries, rate, settings, left)
    assert not part[~movable].any() and sizes[part].sum() <= most * (1 + 1e-9)
    pays = movable & (queries * seconds * (1 - left) > settings.margin * rate * sizes)
    if sizes[pays].sum() < 0.8 * sizes.sum():
        assert not part[~pays].any()
    each = np.where(part | pays, seconds / sizes, 0)
    missed = pays & ~part
    if missed.any() and part.any():  # what is put off is no worse than what is done
        assert each[missed].max() <= each[part].max()
