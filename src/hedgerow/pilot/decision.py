"""The decision of a look: what the autopilot did or would do, why, and the figures behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from hedgerow.core.learning.seconds import RewriteCost
from hedgerow.pilot.clock import days_since, utc_now

Action = Literal["nothing", "statistics", "new files", "small files", "worst files", "whole table"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that a look decides by: the table, its queries, and a candidate, which rewrites some files.

    `queries` are expected until the workload changes. `seconds_now` and `seconds_then` are the mean seconds of a query
    before and after the rewrite. `seconds_described` are those after new statistics, with no row moved; None if there
    is no index that could hold them. A rewrite takes `fixed_seconds`, and `seconds_per_byte` for each byte; it may take
    up to `spread` times as long, or as short.
    """

    table_bytes: float
    candidate_bytes: float
    queries: float
    seconds_now: float
    seconds_then: float
    seconds_per_byte: float
    part: str = "worst files"  # the action, if the candidate is not the whole table
    seconds_described: float | None = None
    bytes_rewritten: float = 0.0  # in the period, by all rewrites
    days_since_whole: float | None = None  # since the last rewrite of the whole table
    fixed_seconds: float = 0.0
    price: float | None = None  # of an hour of the cluster
    spread: float = 1.0

    @property
    def rewrite_cost(self) -> RewriteCost:
        return RewriteCost(self.fixed_seconds, self.seconds_per_byte)

    def money(self, seconds: float) -> str:
        """Return the price of some seconds, in brackets; nothing if the price of an hour is not known."""
        return "" if self.price is None else f" ({seconds / 3600 * self.price:,.2f})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measured outcome of a decision that was carried out.

    `items`: the conditions and expressions in the new index. `times`: how often these rows were rewritten
    recently, this time included; small files that were joined: since their insert.
    `part`: the part of the table that holds them now.
    """

    seconds: float
    path: str
    bytes: float
    items: int
    times: int = 1
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """An action that the autopilot took or would take, and the reasons.

    `gain` and `cost` are estimated seconds, of the action or of the best candidate that was refused. `figures` are None
    if the look ended before there were any. `search_seconds`: the time spent on the search for a layout; 0 without a
    search. `outcome`: None if the decision was not carried out.
    """

    action: Action
    reasons: tuple[str, ...]
    figures: Figures | None = None
    gain: float = 0.0
    cost: float = 0.0
    search_seconds: float = 0.0
    outcome: Outcome | None = None
    at: str = field(default_factory=utc_now)

    @property
    def done(self) -> bool:
        """True if the decision was carried out."""
        return self.outcome is not None

    @property
    def expected_seconds(self) -> float | None:
        """The estimated mean seconds of a query after this decision."""
        if self.figures is None:
            return None
        return self.figures.seconds_then if self.done else self.figures.seconds_now

    def found_nothing(self, margin: float) -> bool:
        """True if a layout was learned and does not pay. A rewrite that pays, but that a limit forbids, was found."""
        return self.action == "nothing" and self.gain < margin * self.cost

    def would_pay(self, queries: float, margin: float) -> bool:
        """True if the refused rewrite would pay off with this many queries, another search included."""
        if self.figures is None or self.figures.queries <= 0 or not self.found_nothing(margin):
            return False
        return self.gain / self.figures.queries * queries >= margin * (self.cost + self.search_seconds)

    def __str__(self) -> str:
        not_done = "" if self.done or self.action == "nothing" else " (not done)"
        return f"{self.action}{not_done}: {'; '.join(self.reasons)}"


def decision_from_json(saved: Mapping[str, Any]) -> Decision:
    """Return a stored decision; ValueError, KeyError, TypeError or OverflowError if it is damaged."""
    action, figures, outcome = (saved[name] for name in ("action", "figures", "outcome"))
    if action not in get_args(Action):
        raise ValueError(f"{action!r} is no action")
    days_since(saved["at"])
    return Decision(
        action,
        tuple(map(str, saved["reasons"])),
        figures=None if figures is None else _record(Figures, figures),
        gain=float(saved["gain"]),
        cost=float(saved["cost"]),
        search_seconds=float(saved["search_seconds"]),
        outcome=None if outcome is None else _record(Outcome, outcome),
        at=saved["at"],
    )


def _record(kind: type[T], saved: Mapping[str, Any]) -> T:
    """Return a record whose values have the types of its fields."""
    values = {}
    for name, hint in get_type_hints(kind).items():
        value = saved[name]
        if hint is float or (hint == float | None and value is not None):
            value = float(value)
        if not isinstance(value, hint):
            raise TypeError(f"{name} cannot be {value!r}")
        values[name] = value
    return kind(**values)
