"""What the queries of a log still count: a kind of query that nobody asks any more should not shape the table.

    day      1 2 3 4 5 6 7 8
    daily    x x x x x            silent for 3 days, never before for longer than from one day to the next: a quarter
    weekly   x           x        silent for 1 day, before for 6: it counts in full

So after a change the layout soon follows the queries of now, which half-lives alone would let it do only slowly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TypeVar

Kind = TypeVar("Kind")


def still_asked(days: Mapping[Kind, Collection[int]]) -> dict[Kind, float]:
    """How much each kind of query counts, from the days on which it was asked; days without any query do not count.

    When a kind has been silent for twice its longest pause it counts half, for three times a quarter, and so on. One
    that was asked on a single day is taken for daily.

    >>> still_asked({"daily": {1, 2, 3, 4, 5}, "weekly": {1, 7}, "new": {6, 8}})
    {'daily': 0.25, 'weekly': 1.0, 'new': 1.0}
    """
    place = {day: i for i, day in enumerate(sorted(set().union(*days.values())))}
    factors = {}
    for kind, own in days.items():
        days_asked = sorted(place[day] for day in own)
        longest = max((b - a for a, b in pairwise(days_asked)), default=1)
        silent = len(place) - 1 - days_asked[-1]
        factors[kind] = 0.5 ** max(0.0, silent / longest - 1)
    return factors


def taken_over(weight: float, still: float, at_this_rate: float) -> float:
    """By how much more queries count since some kinds fell silent: if as many come as before, others took their place.

    `weight`: of all queries, as if no kind had fallen silent; `still`: what is left of it. `at_this_rate`: what it
    would be if on every day as many queries had come as on the last.

    >>> taken_over(100.0, 50.0, 90.0), taken_over(100.0, 50.0, 9.0)
    (1.8, 1.0)
    """
    return max(1.0, min(weight, at_this_rate) / still) if still else 1.0
