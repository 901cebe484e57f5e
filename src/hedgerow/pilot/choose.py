"""Decides whether it pays to rewrite a table, to rewrite some of its files, or to collect other statistics of them.

A rewrite costs seconds once; each later query saves some. Both are estimates, so the gain has to exceed the cost by a
margin. Limits bound what is rewritten, whatever the estimates are.

First `worth_moving` picks the files that may pay for their own rewriting. Then a layout is learned for these, and
`choose` decides with the estimate for that layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from hedgerow.core.arrays import Bools, Floats
from hedgerow.core.byte_text import byte_text
from hedgerow.pilot.decision import Action, Decision, Figures
from hedgerow.pilot.settings import AutopilotSettings


def worth_moving(
    seconds: Floats,
    sizes: Floats,
    movable: Bools,
    queries: float,
    rate: float,
    settings: AutopilotSettings = AutopilotSettings(),
    left: float = 0.0,
) -> Bools:
    """Return which movable files pay for their own rewriting, if it leaves the share `left` of queries' time in them.

    `seconds`: the mean seconds that a query spends in each file now. If the files have more than `most_bytes`, only the
    worst are taken: those in which queries spend most for each byte.

    >>> worth_moving(np.array([5.0, 1.0, 1.0]), np.array([1e9, 1e9, 4e9]), np.ones(3, bool), 100, 1e-7).tolist()
    [True, False, False]
    """
    pays = movable & (queries * seconds * (1 - left) > settings.margin * rate * sizes)
    if sizes[pays].sum() >= settings.nearly_all * sizes.sum():
        pays = movable.copy()
    worst = np.argsort(-seconds / np.maximum(sizes, 1.0), kind="stable")
    worst = worst[pays[worst]]
    pays[worst[np.cumsum(sizes[worst]) > settings.most_bytes]] = False
    return pays


def reason_to_skip(table_bytes: float, settings: AutopilotSettings) -> str | None:
    """Return why the table is too small for the autopilot; None if it is not."""
    if table_bytes >= settings.least_bytes:
        return None
    return f"the table has {byte_text(table_bytes)}, too little to gain by another layout"


def choose(figures: Figures, settings: AutopilotSettings = AutopilotSettings()) -> Decision:
    """Return the decision for the action that saves most after its cost; a limit may forbid some actions.

    >>> seen = dict(table_bytes=1e9, candidate_bytes=1e9, seconds_now=5.0, seconds_then=1.0, seconds_per_byte=2e-7)
    >>> choose(Figures(queries=1000, **seen)).action
    'whole table'
    >>> choose(Figures(queries=10, **seen)).reasons
    ('whole table: saves 40 s in 10 queries, and takes 200 s',)
    """
    if (too_small := reason_to_skip(figures.table_bytes, settings)) is not None:
        return Decision("nothing", (too_small,), figures)
    if not figures.queries:
        return Decision("nothing", ("no queries are expected",), figures)
    reasons: list[str] = []
    allowed: list[tuple[float, float, Action]] = []
    refused: list[tuple[float, float, Action]] = []
    for action, amount, cost, seconds_then in _actions(figures, settings):
        gain = (figures.seconds_now - seconds_then) * figures.queries
        whole = round(gain, 0) + 0.0  # no -0
        saving, seconds = f"{whole:,.0f} s{figures.money(gain)}", _taken(cost, figures)
        of_table = amount in (0, figures.table_bytes)
        subject = action if of_table else f"{action}, {byte_text(amount)} of {byte_text(figures.table_bytes)}"
        sentence = f"{subject}: saves {saving} in {figures.queries:,.0f} queries, and takes {seconds}"
        pays, forbidden = gain > 0 and gain >= settings.margin * cost, _forbidden(action, amount, figures, settings)
        if pays and forbidden is not None:
            sentence += f", but {forbidden}"
        (allowed if pays and forbidden is None else refused).append((gain, cost, action))
        reasons.append(sentence)
    best = max(allowed or refused, key=lambda candidate: candidate[0] - candidate[1], default=(0.0, 0.0, "nothing"))
    gain, cost, action = best
    return Decision(action if allowed else "nothing", tuple(reasons), figures, gain, cost)


def _actions(figures: Figures, settings: AutopilotSettings) -> Iterator[tuple[Action, float, float, float]]:
    """Yield each possible action, the bytes that it rewrites, its seconds, and the seconds of a query after it."""
    cost = figures.rewrite_cost
    if figures.seconds_described is not None:
        seconds = settings.statistics_cost * cost.seconds(figures.table_bytes, 0)
        yield "statistics", 0.0, seconds, figures.seconds_described
    amount = figures.candidate_bytes
    if amount <= 0:
        return
    is_whole = amount >= figures.table_bytes and figures.part != "small files"
    action: Action = "whole table" if is_whole else cast("Action", figures.part)
    yield action, amount, cost.seconds(amount, 0), figures.seconds_then


def _forbidden(action: Action, amount: float, figures: Figures, settings: AutopilotSettings) -> str | None:
    """Return which limit forbids the action."""
    if action == "new files" and amount < settings.least_new:
        return f"{byte_text(amount)} of new files wait for more"
    if figures.bytes_rewritten + amount > settings.rewrites * figures.table_bytes:
        lately = byte_text(figures.bytes_rewritten)
        return f"{lately} were rewritten lately, and {settings.rewrites:g} times the table is the limit"
    days = figures.days_since_whole
    if action == "whole table" and days is not None and days < settings.cooldown:
        return f"the whole table was rewritten {days:.1f} days ago"
    return None


def _taken(cost: float, figures: Figures) -> str:
    """Return the seconds of a rewrite, and its price, from the least to the most that it may take."""
    least, most = cost / figures.spread, cost * figures.spread
    seconds = f"{most:,.0f} s" if f"{least:,.0f}" == f"{most:,.0f}" else f"{least:,.0f} to {most:,.0f} s"
    return f"{seconds}{figures.money(cost)}"
