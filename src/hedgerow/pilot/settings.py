"""The settings of the autopilot: its limits and thresholds, and the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits and thresholds of the autopilot.

    The first six bound what it may do, whatever it estimates. The others are thresholds that rarely need a change.
    """

    least_bytes: float = 64 << 20  # A smaller table is left alone.
    least_new: float = 128 << 20  # Fewer bytes in new files wait for more.
    margin: float = 1.5  # The gain has to be at least this multiple of the cost.
    rewrites: float = 2.0  # Each byte is rewritten at most this often in a period.
    cooldown: float = 1.0  # This many days have to pass between two rewrites of the same rows.
    most_bytes: float = float("inf")  # One run rewrites at most this many bytes.

    search_interval: float = 10.0  # Search again once queries ran this many times as long as the last search.
    longest_backoff: float = 10.0  # Searches that found nothing lengthen the interval at most by this factor.
    early_search: float = 3.0  # Search earlier once queries exceed their estimate by this many times the last search.
    least_gain: float = 0.05  # A gain below this share of the time counts as none: estimates have errors.
    nearly_all: float = 0.8  # If files with this share of the bytes pay for a rewrite, rewrite all.
    far_fewer: float = 0.5  # Learn again if the files that pay hold less than this share of those learned for.
    statistics_cost: float = 0.3  # New statistics take this share of the time of a rewrite.


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a call of `autopilot`, which explains them; `learn_arguments` are for `learn`."""

    learner: str
    learn_arguments: Mapping[str, Any]
    horizon: float | None
    half_life: float
    period: float
    price: float | None
    limits: Limits
