"""Decides whether it pays to rewrite a table, or some of its files, or to describe what its files hold in other words.

A rewrite costs seconds once; each later query saves some. Both are estimates, so the gain has to exceed the cost by a
margin, and what is rewritten is bounded whatever the estimates say.

First it is asked which files may pay for their own rewriting, `worth_moving`; then a layout is learned for these, and
with what that leaves to read it is asked again, `choose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hedgerow.core.arrays import Bools, Floats

Action = Literal["nothing", "statistics", "new files", "worst files", "whole table"]
_NEARLY_ALL = 0.8  # of a table's bytes: then all of it is laid out in one layout
_READING = 0.3  # to read a table and describe its files takes this share of the time of a rewrite


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a table and its queries.

    `size`: the table's bytes. `part`: those of the files that would be laid out anew; `is_new`: no index describes
    these. `queries`: that are expected until the workload changes. Seconds of a query: `now`; `then`, if the part were
    laid out anew; `described`, if the index told what the queries ask, and no row moved. A rewrite takes `fixed`
    seconds, and `rate` more for each byte. `rewritten`: bytes of all rewrites in the period; `days_since_whole`: since
    the last of everything. `price`: of an hour of the cluster.
    """

    size: float
    part: float
    queries: float
    now: float
    then: float
    rate: float
    is_new: bool = False
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

    `least_bytes`: of the table. `least_new`: of new files. `most_bytes`: that one run rewrites. `margin`: the gain has
    to be so many times the cost. `rewrites`: how often each byte may be rewritten in a period. `cooldown`: days between
    two rewrites of the same rows.
    """

    least_bytes: float = 64 << 20
    least_new: float = 128 << 20
    margin: float = 1.5
    rewrites: float = 2.0
    cooldown: float = 1.0
    most_bytes: float = float("inf")


@dataclass(frozen=True, slots=True)
class Choice:
    """What to do, and why; `gain` and `cost` in seconds, of the action or of the best one that was refused."""

    action: Action
    reasons: tuple[str, ...]
    gain: float = 0.0
    cost: float = 0.0


def worth_moving(
    seconds: Floats,
    sizes: Floats,
    movable: Bools,
    queries: float,
    rate: float,
    limits: Limits = Limits(),
    left: float = 0.0,
) -> Bools:
    """The movable files that pay for their own rewriting, if queries then spend the share `left` of their time in them.

    `seconds`: of each file, what a query spends in it now, in the mean. Of more than `most_bytes` the worst files are
    taken: those in which queries spend most for each byte.

    >>> worth_moving(np.array([5.0, 1.0, 1.0]), np.array([1e9, 1e9, 4e9]), np.ones(3, bool), 100, 1e-7).tolist()
    [True, False, False]
    """
    pays = movable & (queries * seconds * (1 - left) > limits.margin * rate * sizes)
    if sizes[pays].sum() >= _NEARLY_ALL * sizes.sum():
        pays = movable.copy()
    worst = np.argsort(-seconds / np.maximum(sizes, 1.0), kind="stable")
    worst = worst[pays[worst]]
    pays[worst[np.cumsum(sizes[worst]) > limits.most_bytes]] = False
    return pays


def choose(facts: Facts, limits: Limits = Limits()) -> Choice:
    """The action with the largest gain after its cost, of those that nothing forbids.

    >>> choose(Facts(size=1e9, part=1e9, queries=1000, now=5.0, then=1.0, rate=2e-7)).action
    'whole table'
    >>> choose(Facts(size=1e9, part=1e9, queries=10, now=5.0, then=1.0, rate=2e-7)).reasons
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
        what = action if amount in (0, facts.size) else f"{action}, {_size(amount)} of {_size(facts.size)}"
        sentence = f"{what}: saves {worth} in {facts.queries:,.0f} queries, and takes {paid}"
        against = _against(action, amount, facts, limits)
        pays = gain > 0 and gain >= limits.margin * cost
        if pays and against is not None:
            sentence += f", but {against}"
        (allowed if pays and against is None else refused).append(Choice(action, (), gain, cost))
        reasons.append(sentence)
    if allowed:
        best = max(allowed, key=lambda c: c.gain - c.cost)
        return Choice(best.action, tuple(reasons), best.gain, best.cost)
    nearest = max(refused, key=lambda c: c.gain - c.cost, default=Choice("nothing", ()))
    return Choice("nothing", tuple(reasons), nearest.gain, nearest.cost)


def _candidates(facts: Facts, limits: Limits) -> Iterator[tuple[Action, float, float, float]]:
    """Each action with the bytes that it rewrites, the seconds that it takes, and those of a query after it."""
    if facts.described is not None:
        yield "statistics", 0.0, _READING * (facts.fixed + facts.size * facts.rate), facts.described
    if facts.part <= 0:
        return
    action: Action = "whole table" if facts.part >= facts.size else "new files" if facts.is_new else "worst files"
    yield action, facts.part, facts.fixed + facts.part * facts.rate, facts.then


def _against(action: Action, amount: float, facts: Facts, limits: Limits) -> str | None:
    """What forbids the action although it pays."""
    if action == "new files" and amount < limits.least_new:
        return f"{_size(amount)} of new files wait for more"
    if facts.rewritten + amount > limits.rewrites * facts.size:
        return f"{_size(facts.rewritten)} were rewritten lately, and {limits.rewrites:g} times the table is the limit"
    if action == "whole table" and facts.days_since_whole is not None and facts.days_since_whole < limits.cooldown:
        return f"the whole table was rewritten {facts.days_since_whole:.1f} days ago"
    return None


def _size(count: float) -> str:
    return f"{count / (1 << 30):,.1f} GB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MB"
