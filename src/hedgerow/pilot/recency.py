"""Weights queries by how recently their shape occurred, so that a layout soon follows a change of the workload.

    day      1 2 3 4 5 6 7 8
    daily    x x x x x            absent for 3 days, before for 1 at most: its weight is a quarter
    weekly   x           x        absent for 1 day, before for 6: its weight is whole

Half-lives alone would follow a change only slowly.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True)
class Span:
    """The days that a log covers, at least one, and its queries; `mean`: the seconds of one, None if not known."""

    days: float
    queries: float
    mean: float | None


def counted_days(days: float, half_life: float) -> float:
    """Return the weight of the last days, if each day counts as much as its queries.

    >>> round(counted_days(7, half_life=7), 2), round(counted_days(1000, half_life=7), 2)
    (5.05, 10.1)
    """
    return half_life / math.log(2) * (1 - math.pow(0.5, days / half_life))


def recency_factors(days: Mapping[Shape, Collection[int]]) -> dict[Shape, float]:
    """Return a factor for the weight of each shape, from the days on which it was asked.

    A shape that is absent for twice its longest pause counts half, for three times a quarter, and so on. Days without
    any query do not count. A shape that was asked on a single day is taken for daily.

    >>> recency_factors({"daily": {1, 2, 3, 4, 5}, "weekly": {1, 7}, "new": {6, 8}})
    {'daily': 0.25, 'weekly': 1.0, 'new': 1.0}
    """
    place = {day: i for i, day in enumerate(sorted(set().union(*days.values())))}
    factors = {}
    for shape, own in days.items():
        days_asked = sorted(place[day] for day in own)
        longest_pause = max((b - a for a, b in pairwise(days_asked)), default=1)
        absent = len(place) - 1 - days_asked[-1]
        factors[shape] = 0.5 ** max(0.0, absent / longest_pause - 1)
    return factors


def replacement_factor(weight: float, recent_weight: float, at_last_rate: float) -> float:
    """Return the factor that scales the remaining queries up to today's rate, as they replace the absent shapes.

    Args:
        weight: of all queries, as if no shape were absent.
        recent_weight: the same with the factors of recency.
        at_last_rate: the weight if each day had had as many queries as the last one.

    >>> replacement_factor(100.0, 50.0, 90.0), replacement_factor(100.0, 50.0, 9.0)
    (1.8, 1.0)
    """
    return max(1.0, min(weight, at_last_rate) / recent_weight) if recent_weight else 1.0


def unexpected_seconds(
    before: Mapping[Shape, float], late: Mapping[Shape, float], seconds: Mapping[Shape, float]
) -> float:
    """Return the seconds of late queries that came more often than expected from the shares of shapes before.

    Args:
        before: the weight of each shape before.
        late, seconds: the number and the seconds of each shape's late queries.

    >>> unexpected_seconds({"old": 9.0}, {"old": 10.0}, {"old": 50.0})
    0.0
    >>> unexpected_seconds({"old": 9.0}, {"old": 10.0, "new": 5.0}, {"old": 50.0, "new": 20.0})
    20.0
    """
    all_before, all_late = sum(before.values()), sum(late.values())
    unexpected = 0.0
    for shape, count in late.items():
        expected = all_late * before.get(shape, 0.0) / all_before if all_before else 0.0
        if count > expected:
            unexpected += seconds[shape] * (count - expected) / count
    return unexpected
