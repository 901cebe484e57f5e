"""Backs off: looking for a layout takes time, so it waits until queries have taken much longer."""

from __future__ import annotations

from collections.abc import Callable

from hedgerow.pilot.history import History
from hedgerow.pilot.recency import Span
from hedgerow.pilot.settings import AutopilotSettings


def reason_to_wait(
    history: History, logged: Span, queries: float, since: Callable[[str], Span], settings: AutopilotSettings
) -> str | None:
    """Return why it is too soon to look for a layout again; None if it is not.

    Args:
        logged: the whole log, with older queries counting less.
        queries: as many are expected.
        since: the log from a time on. Where it lacks the seconds of queries, the last estimate counts.
    """
    last = history.last_search
    if last is None or (last.action != "nothing" and not last.done) or last.would_pay(queries, settings.margin):
        return None
    since_search, estimate = since(last.at), last.expected_seconds
    mean = max((s for s in (logged.mean, since_search.mean) if s is not None), default=estimate or 0.0)
    expected, taken = mean * queries, (since_search.mean or mean) * since_search.queries
    if expected < settings.search_interval * last.search_seconds:
        return f"the queries take {expected:,.0f} s in all, and to look for a layout took {last.search_seconds:,.0f} s"
    backoff = min(2.0 ** history.searches_without_result(settings.margin), settings.longest_backoff)
    is_early = taken < settings.search_interval * backoff * last.search_seconds
    excess = 0.0 if estimate is None else taken - estimate * since_search.queries
    if is_early and excess < settings.early_search * last.search_seconds:
        return f"since the last look queries took {taken:,.0f} s, and the look itself {last.search_seconds:,.0f} s"
    return None
