"""Backs off: looking for a layout takes time, so it waits until queries have taken much longer, or differ.

A look decides by the table's files, the log and past decisions only. So a search that follows another one without news
finds the same. News are queries of other kinds, queries that take longer than estimated, and twice as many expected
queries. Without news a search is made rarely, in case the estimates are wrong.
"""

from __future__ import annotations

from hedgerow.pilot.decision import Decision
from hedgerow.pilot.history import History
from hedgerow.pilot.recency import Span
from hedgerow.pilot.settings import AutopilotSettings

_MORE = 2.0  # times as many queries are news: more rewrites pay then


def reason_to_wait(
    history: History, logged: Span, late: Span, news: float, queries: float, settings: AutopilotSettings
) -> str | None:
    """Return why it is too soon to look for a layout again; None if it is not.

    Args:
        logged: the whole log, with older queries counting less.
        late: the queries since the last search. Where the log lacks their seconds, the last estimate counts.
        news: the seconds of late queries of kinds that came more often than before.
        queries: as many are expected.
    """
    last = history.last_search
    if last is None or (last.action != "nothing" and not last.done) or last.would_pay(queries, settings.margin):
        return None
    estimate = last.expected_seconds
    mean = max((s for s in (logged.mean, late.mean) if s is not None), default=estimate or 0.0)
    expected, taken = mean * queries, (late.mean or mean) * late.queries
    if expected < settings.search_interval * last.search_seconds:
        return f"the queries take {expected:,.0f} s in all, and to look for a layout took {last.search_seconds:,.0f} s"
    fruitless = history.searches_without_result(settings.margin)
    backoff = min(2.0**fruitless, settings.longest_backoff)
    if taken >= settings.search_interval * settings.without_news * backoff * last.search_seconds:
        return None
    excess = 0.0 if estimate is None else taken - estimate * late.queries
    unexpected = max(excess, news)
    if unexpected >= settings.early_search * max(1.0, backoff / 2) * last.search_seconds:
        return None
    if _has_many_more(last, queries) and taken >= settings.search_interval * last.search_seconds:
        return None
    return (
        f"since the last look queries took {taken:,.0f} s, {unexpected:,.0f} s of these unexpectedly, "
        f"and the look itself {last.search_seconds:,.0f} s"
    )


def _has_many_more(last: Decision, queries: float) -> bool:
    """True if many more queries are expected than when a rewrite was decided."""
    return last.done and last.figures is not None and queries >= _MORE * last.figures.queries
