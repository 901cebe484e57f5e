"""Forecasts the dates in conditions that move with the clock, such as those of "the last 7 days".

    asked on the     1st          8th       today, the 15th     18th
    "last 7 days"    day >= 24th  day >= 1  day >= 8            day >= 11

A log has the dates of the past, which nobody will ask for again. The queries of such a shape are learned from as they
will be asked in the coming days. That is done only where the log proves it: dates at the same distance from the clock
must predict the last third of its days better than the earlier dates themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil, floor, gcd, sqrt
from typing import Any

import numpy as np

from hedgerow.core.arrays import Floats, Ints

_DATE = re.compile(r"(?<=')(\d{4}-\d\d-\d\d)(?=(?:[ T](\d\d):(\d\d)[\d:.]*(?:Z|[+-]\d\d:?\d\d)?)?')")
_EQUALS = re.compile(r"[^<>!]= (?:DATE )?'\d{4}-\d\d-\d\d'")
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400e6  # microseconds
_LEAST_DAYS = 6  # on which a shape was asked; fewer prove nothing
_MOST_TRIED = 200  # queries of a shape, in each part of the log
_CHANCES = 3.0  # so many times what chance explains may be hidden
_PROOF = 0.5  # the change of the distances from the clock is at most this share of that of the dates


@dataclass(frozen=True, slots=True)
class Clock:
    """The places, as in `dates_in`, of the dates that move with the clock in the conditions of a shape.

    `step`: they move by a multiple of so many days, such as 7 if they are always Mondays."""

    places: Collection[int]
    step: int

    def coming(self, conditions: Sequence[str], asked: float, now: float, days: float, number: int) -> tuple[str, ...]:
        """Return the conditions as they will be on one of the coming days, or as they are, see `coming_shift`.

        `number`: of the query; the days are spread evenly over queries with any numbers."""
        moving = [value for place, value in enumerate(dates_in(conditions)) if place in self.places]
        first, last = min(moving), max(moving)
        end = last if last > first else first + 1 if _EQUALS.search("; ".join(conditions)) else asked
        # The fractions of multiples of two such numbers fill a square evenly.
        chances = number * sqrt(2) % 1, number * sqrt(3) % 1
        shift = coming_shift(asked, (first, end), self.step, now, days, chances)
        try:
            return tuple(moved(conditions, self.places, shift))
        except OverflowError:  # the end of time, such as 9999-12-31
            return tuple(conditions)


def dates_in(conditions: Sequence[str]) -> tuple[float, ...]:
    """Return the dates and timestamps among the literals, in days since 1970; none if one of them does not exist.

    >>> dates_in(["day >= DATE '1970-01-03' AND at < TIMESTAMP '1970-01-03 18:00:00'", "name = 'of 1970-01-03'"])
    (2.0, 2.75)
    """
    try:
        return tuple(
            date.fromisoformat(day).toordinal() - _EPOCH + (int(hour or 0) + int(minute or 0) / 60) / 24
            for day, hour, minute in _DATE.findall("; ".join(conditions))
        )
    except ValueError:
        return ()


def moved(conditions: Sequence[str], places: Collection[int], days: int) -> list[str]:
    """Return the conditions with some of the dates in them moved; `places`: as in `dates_in`.

    >>> moved(["day >= '2026-02-27' AND at < TIMESTAMP '2026-02-28 18:00:00'", "born < '2000-01-01'"], {0, 1}, 2)
    ["day >= '2026-03-01' AND at < TIMESTAMP '2026-03-02 18:00:00'", "born < '2000-01-01'"]
    """
    place = -1

    def move(found: re.Match[str]) -> str:
        nonlocal place
        place += 1
        return (date.fromisoformat(found[1]) + timedelta(days)).isoformat() if place in places else found[1]

    return [_DATE.sub(move, condition) for condition in conditions]


def clocks_of(queries: Sequence[Any], shapes: Sequence[str], half_life: float, parts: int) -> dict[int, Clock]:
    """Return the clock of each query that has one, by its place.

    Args:
        queries: with `conditions` and `keys`, `first` and `last` in microseconds, and the `days` on which they came.
        half_life: after so many real days a query counts half.
        parts: of a half-life, which are the `days`.
    """
    dates = [dates_in(query.conditions) for query in queries]
    by_shape = defaultdict[tuple[str, int], list[int]](list)
    for place, (shape, own) in enumerate(zip(shapes, dates, strict=True)):
        if own and not dates_in(queries[place]["keys"]):  # the keys would keep their dates
            by_shape[shape, len(own)].append(place)
    clocks: dict[int, Clock] = {}
    for members in by_shape.values():
        span = max(queries[i].last for i in members) - min(queries[i].first for i in members)
        # Some have constant dates, such as the start of the year: these were asked over most of the time.
        members = [i for i in members if queries[i].last - queries[i].first <= span / 2]
        if not members:
            continue
        asked = [_asked(queries[i], half_life / parts) for i in members]
        literals = np.repeat([dates[i] for i in members], list(map(len, asked)), axis=0)
        varying = np.flatnonzero(literals.min(axis=0) < literals.max(axis=0))
        if moves_with_the_clock(np.concatenate(asked), literals[:, varying], half_life):
            days = np.floor(literals[:, varying]).astype(int)
            step = gcd(*(int(d) for d in (days - days[0]).ravel())) or 1
            clocks |= dict.fromkeys(members, Clock(frozenset(map(int, varying)), step))
    return clocks


def moves_with_the_clock(asked: Floats, literals: Floats, half_life: float) -> bool:
    """True if the last third of the days on which queries were asked proves that their dates move with the clock.

    Since the earlier days the distances of the dates from the clock must have changed much less than the dates have,
    even if chance hid a part of their change. Changes are energy distances of two distributions, so a shape may ask for
    the last 7 days and for the last 30.

    Args:
        asked: when each query was asked, in days.
        literals: a row for each query, with its dates in days.

    >>> days = np.arange(9.0)
    >>> moves_with_the_clock(days, days[:, None] - 7, 7), moves_with_the_clock(days, days[:, None] * 5 % 9, 7)
    (True, False)
    """
    days = np.unique(np.floor(asked))
    if len(days) < _LEAST_DAYS or not literals.size:
        return False
    split = days[ceil(len(days) * 2 / 3)]
    early, late = (_some(np.flatnonzero(part)) for part in (asked < split, asked >= split))
    weights = 0.5 ** ((asked[early].max() - asked[early]) / half_life)
    weights /= weights.sum()

    def change(origin: Floats) -> tuple[float, float]:
        """Return by how much the distances from `origin` have changed, and the mean change by chance alone."""
        before, after = (literals[part] - origin[part, None] for part in (early, late))
        within_before = float(weights @ _distances(before, before) @ weights)
        within_after = float(_distances(after, after).mean())
        between = float((weights @ _distances(before, after)).mean())
        chance = (within_before + within_after) / 2 * (float(weights @ weights) + 1 / len(late))
        return 2 * between - within_before - within_after, chance

    (dates, _), (distances, chance) = change(np.zeros_like(asked)), change(asked)
    return distances + _CHANCES * chance < _PROOF * dates


def coming_shift(
    asked: float, span: tuple[float, float], step: int, now: float, days: float, chances: tuple[float, float]
) -> int:
    """Return by how many days a query's dates move, so that it is as it will be asked on one of the coming days.

        rows of the table       ------------------------------]now
        as it was asked             [ span         ]
        on one of the coming days           [ span         ]          a third of its rows is to come
        some days later                             [ span         ]  all are

    Of its queries on that day the share whose rows are to come stays as it was asked. They stand for the rows to come,
    which will lie as the earlier ones do.

    Args:
        asked, now: the time of asking, and the present, in days.
        span: from the earliest of its dates that move to the latest, or to the time of asking.
        step: it moves by a multiple of so many days.
        days: how many days come.
        chances: two random numbers from 0 to 1, for the day, and for whether it stays.

    >>> [coming_shift(3, (-2, 3), 1, 10, 7, (day, 0.5)) for day in (0, 0.2, 0.5, 0.99)]
    [8, 9, 0, 0]
    """
    shift = step * (floor((now - asked) / step) + 1 + floor(chances[0] * max(1, days // step)))
    first, end = span
    to_come = (end + shift - now) / max(end - first, 1e-9)
    return shift if to_come <= chances[1] else 0


def _asked(query: Any, part: float) -> Floats:
    """Return about when a query was asked on each of its days, in real days. `part`: the length of such a day."""
    middles: Floats = (np.array(sorted(query.days)) + 0.5) * part
    return middles.clip(query.first / _DAY, query.last / _DAY)


def _some(places: Ints) -> Ints:
    """Return at most `_MOST_TRIED` of the places, at random: dashboards may take turns, which even steps would miss."""
    if len(places) <= _MOST_TRIED:
        return places
    some: Ints = np.random.default_rng(0).choice(places, _MOST_TRIED, replace=False)
    return some


def _distances(some: Floats, others: Floats) -> Floats:
    distances: Floats = np.abs(some[:, None] - others[None]).sum(axis=2)
    return distances
