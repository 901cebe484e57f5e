"""Decides whether it pays to rewrite a table, or its new files, or to describe what its files hold in other words.

A rewrite costs seconds once; each later query saves some. Both are estimates, so the gain has to exceed the cost by a
margin, and what is rewritten is bounded whatever the estimates say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Action = Literal["nothing", "statistics", "new files", "whole table"]
_READING = 0.3  # to read a table and describe its files takes this share of the time of a rewrite


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a table and its queries.

    `new_bytes`: in files that no index describes. `queries`: that are expected until the workload changes. Seconds of a
    query: `now`; `described`, if the index told what the queries ask, and no row moved; `sorted_in`, if the new files
    were laid out; `then`, if the whole table were laid out anew. A rewrite takes `fixed` seconds, and
    `rate` more for each byte. `rewritten`: bytes of all rewrites in the period; `days_since_whole`: since the last of
    everything. `price`: of an hour of the cluster.
    """

    size: float
    new_bytes: float
    queries: float
    now: float
    then: float
    rate: float
    sorted_in: float | None = None
    described: float | None = None
    rewritten: float = 0.0
    days_since_whole: float | None = None
    fixed: float = 0.0
    price: float | None = None

    def money(self, seconds: float) -> str:
        """What so many seconds cost, in brackets, where an hour's price is known."""
        return "" if self.price is None else f" ({seconds / 3600 * self.price:,.2f})"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a rewrite is not even considered.

    `least_bytes`: of the table. `least_new`: of new files. `margin`: the gain has to be so many times the cost.
    `rewrites`: how often each byte may be rewritten in a period. `cooldown`: days between two rewrites of all.
    """

    least_bytes: float = 64 << 20
    least_new: float = 128 << 20
    margin: float = 1.5
    rewrites: float = 2.0
    cooldown: float = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do, and why; `gain` and `cost` in seconds, of the action or of the best one that was refused."""

    action: Action
    reasons: tuple[str, ...]
    gain: float = 0.0
    cost: float = 0.0


def choose(facts: Facts, limits: Limits = Limits()) -> Choice:
    """The action with the largest gain after its cost, of those that nothing forbids.

    >>> choose(Facts(size=1e9, new_bytes=1e9, queries=1000, now=5.0, then=1.0, rate=2e-7)).action
    'whole table'
    >>> choose(Facts(size=1e9, new_bytes=1e9, queries=10, now=5.0, then=1.0, rate=2e-7)).reasons
    ('whole table: saves 40 s in 10 queries, and takes 200 s',)
    """
    if facts.size < limits.least_bytes:
        return Choice("nothing", (f"the table has {_size(facts.size)}, too little to gain by another layout",))
    if not facts.queries:
        return Choice("nothing", ("no queries are expected",))
    reasons: list[str] = []
    allowed: list[Choice] = []
    refused: list[Choice] = []
    for action, amount, cost, then in _candidates(facts, limits):
        gain = (facts.now - then) * facts.queries
        worth, paid = (f"{seconds:,.0f} s{facts.money(seconds)}" for seconds in (gain, cost))
        sentence = f"{action}: saves {worth} in {facts.queries:,.0f} queries, and takes {paid}"
        against = _against(action, amount, facts, limits)
        if gain < limits.margin * cost or gain <= 0:
            refused.append(Choice(action, (), gain, cost))
        elif against is not None:
            sentence += f", but {against}"
        else:
            allowed.append(Choice(action, (), gain, cost))
        reasons.append(sentence)
    if allowed:
        best = max(allowed, key=lambda c: c.gain - c.cost)
        return Choice(best.action, tuple(reasons), best.gain, best.cost)
    nearest = max(refused, key=lambda c: c.gain - c.cost, default=Choice("nothing", ()))
    return Choice("nothing", tuple(reasons), nearest.gain, nearest.cost)


def _candidates(facts: Facts, limits: Limits) -> Iterator[tuple[Action, float, float, float]]:
    """Each action with the bytes that it rewrites, the seconds that it takes, and those of a query after it."""
    whole = facts.fixed + facts.size * facts.rate
    if facts.described is not None:
        yield "statistics", 0.0, _READING * whole, facts.described
    # Where all files are new, as after a rewrite that was killed, that is the whole table.
    if facts.sorted_in is not None and limits.least_new <= facts.new_bytes < facts.size:
        yield "new files", facts.new_bytes, facts.fixed + facts.new_bytes * facts.rate, facts.sorted_in
    yield "whole table", facts.size, whole, facts.then


def _against(action: Action, amount: float, facts: Facts, limits: Limits) -> str | None:
    """What forbids the action although it pays."""
    if facts.rewritten + amount > limits.rewrites * facts.size:
        return f"{_size(facts.rewritten)} were rewritten lately, and {limits.rewrites:g} times the table is the limit"
    if action == "whole table" and facts.days_since_whole is not None and facts.days_since_whole < limits.cooldown:
        return f"the whole table was rewritten {facts.days_since_whole:.1f} days ago"
    return None


def _size(count: float) -> str:
    return f"{count / (1 << 30):,.1f} GB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MB"
