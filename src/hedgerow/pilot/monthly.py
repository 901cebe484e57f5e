"""Forecasts the weight of queries that come on certain days of the month.

    day of the month      1             8            15            22            29     1
    a monthly report      *                                                             *
    its weight by age     1             1/2          1/4           1/8           1/16
    as it is expected     1/16          1/8          1/4           1/2           1

By its age a report would weigh most on the day after it came. Weekly shapes need no forecast: their weight
by age is near enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from math import ceil
from typing import TypeVar

import numpy as np

from hedgerow.core.arrays import Floats, Ints

Shape = TypeVar("Shape")

_MONTH, _MONTHS, _MOST_MONTHS = 31, 3, 13  # in days; a log of fewer months proves nothing; of more, the last ones count
_PROOF = 0.5  # the squared errors of the forecast are at most this share of those of the mean rate
_ROUNDING = 1e-9  # of a mean
_HALF_LIVES = 5  # what comes later does not count
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LEAST_FACTOR = 0.01  # a shape that is not expected keeps this share of its weight


def monthly_factors(
    counts: Mapping[Shape, Mapping[int, float]], last: int, half_life: float, parts: int
) -> dict[Shape, float]:
    """Return a factor for the weight of each shape: 1 unless the log proves that it comes on certain days of the month.

    A coming day counts half after a half-life, as a past one does.

    Args:
        counts: how many queries of a shape came on each day; a day is one of the `parts` of a half-life.
        last: the last day of the log.
        half_life: in real days.

    >>> report = {day: 1.0 for day in (0, 31, 59, 90)}  # the first days of January to April 1970
    >>> [round(monthly_factors({"report": report}, last, 7, 7)["report"], 1) for last in (92, 118)]
    [0.1, 14.4]
    """
    first = min(day for own in counts.values() for day in own)
    days_of_part = half_life / parts
    first = max(first, last - ceil(_MOST_MONTHS * _MONTH / days_of_part))
    past, coming = last + 1 - first, parts * _HALF_LIVES
    if past * days_of_part < _MONTHS * _MONTH:
        return dict.fromkeys(counts, 1.0)
    middles = (np.arange(first, last + 1 + coming) + 0.5) * days_of_part
    days = np.array([(_EPOCH + timedelta(float(middle))).day for middle in middles])
    by_age = 0.5 ** (np.arange(past)[::-1] / parts)
    by_distance = 0.5 ** (np.arange(coming) / parts) * (1 - 0.5 ** (past / parts))  # so both have the same sum
    factors = {}
    for shape, own in counts.items():
        came = np.array([own.get(day, 0.0) for day in range(first, last + 1)])
        weight = float(by_age @ came)
        if weight and _comes_monthly(came, days[:past], by_age):
            factors[shape] = max(_LEAST_FACTOR, float(by_distance @ _expected(came, days)) / weight)
        else:
            factors[shape] = 1.0
    return factors


def _comes_monthly(came: Floats, days: Ints, weights: Floats) -> bool:
    """True if the days of the month predict the last third of the log much better than the mean rate does."""
    split = ceil(len(came) * 2 / 3)
    known, wanted = came[:split], came[split:]
    rate = float(np.average(known, weights=weights[-split:]))
    error, plain = (float(((forecast - wanted) ** 2).sum()) for forecast in (_expected(known, days), rate))
    return error < _PROOF * plain and plain > _ROUNDING * float(wanted @ wanted)


def _expected(came: Floats, days: Ints) -> Floats:
    """Return how many queries the days after those of `came` bring: the mean of earlier days of the month alike.

    `days`: the day of the month of each day."""
    known, coming = np.split(days, [len(came)])
    sums, totals = (np.bincount(known, weights, minlength=_MONTH + 1) for weights in (came, None))
    mean: Floats = sums / np.maximum(totals, 1)
    return mean[coming]
