"""Another search for a layout waits until queries have taken much longer than the last one, or than it estimated."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.pilot.backoff import reason_to_wait
from hedgerow.pilot.decision import Decision, Figures, Outcome
from hedgerow.pilot.history import History
from hedgerow.pilot.recency import Span
from hedgerow.pilot.settings import AutopilotSettings

BEGUN = datetime.now(timezone.utc) - timedelta(days=1)
FORTY_SECONDS = Span(1.0, 40.0, 1.0)  # since then: 40 queries of a second each
NO_SECONDS = Span(1.0, 40.0, None)
LOG = Span(20.0, 67.0, 1.0)  # older queries count less


def figures(seconds: float, queries: float = 10.0) -> Figures:
    """The figures of a decision by which a query takes this many seconds."""
    return Figures(1e9, 1e9, queries, seconds, seconds, 0.0)


def nothing(seconds: float, search: float, gain: float = 0.0, cost: float = 0.0, hours: float = 0.0) -> Decision:
    at = (BEGUN - timedelta(hours=hours)).isoformat()
    return Decision("nothing", (), figures(seconds), gain, cost, search_seconds=search, at=at)


def wait(
    *decisions: Decision, log: Span = LOG, late: Span = FORTY_SECONDS, news: float = 0.0, queries: float = 67.0
) -> str | None:
    return reason_to_wait(History(decisions, 7.0), log, late, news, queries, AutopilotSettings())


def test_the_first_search_does_not_wait() -> None:
    assert wait() is None
    assert wait(Decision("nothing", ("too soon",))) is None
    refused = nothing(1.0, 1e9)
    assert wait(refused) is not None
    shadow = Decision("whole table", (), figures(1.0), search_seconds=1e9, at=refused.at)
    assert wait(shadow, refused) is None  # it was not carried out, so it may be now


@pytest.mark.parametrize(("estimate", "too_soon"), [(0.9, True), (0.5, False)])
def test_queries_that_take_longer_than_estimated_bring_a_search(estimate: float, too_soon: bool) -> None:
    """The search took five seconds, and 40 queries a second each: 4 s or 20 s more than estimated."""
    assert ("since the last look queries took 40 s" in (wait(nothing(estimate, 5.0)) or "")) == too_soon


@pytest.mark.parametrize(("news", "too_soon"), [(14.0, True), (15.0, False)])
def test_new_kinds_of_queries_bring_a_search(news: float, too_soon: bool) -> None:
    """The search took five seconds; its estimate is right."""
    assert ((wait(nothing(1.0, 5.0), news=news)) is not None) == too_soon


@pytest.mark.parametrize(
    ("gain", "without_result", "too_soon"), [(9, 0, False), (9, 1, False), (9, 2, True), (900, 2, False)]
)
def test_searches_without_result_back_off(gain: float, without_result: int, too_soon: bool) -> None:
    """Queries of 400 s pay for a search of 1.5 s, also for twice as many seconds, but not for four times. A search that
    found what pays, though a limit forbade it, has a result."""
    before = nothing(0.95, 1.5, hours=9).at
    done = Decision("new files", (), figures(0.95, 400.0), 9, 1, 1.5, Outcome(1.0, "/t", 1.0, 0), before)
    searches = [nothing(0.95, 1.5, gain, 100, hours) for hours in range(without_result)]
    reason = wait(*searches, done, late=Span(1.0, 400.0, 0.95))
    assert ("since the last look queries took 380 s" in (reason or "")) == too_soon


def test_the_interval_is_bounded() -> None:
    """However many searches found nothing: a thousand times the last one is enough."""
    searches = [nothing(1.0, 0.3, 9, 100, hours) for hours in range(30)]
    assert wait(*searches, late=Span(1.0, 300.0, 1.0)) is None
    assert wait(*searches, late=Span(1.0, 299.0, 1.0)) is not None


def test_many_more_expected_queries_bring_a_search() -> None:
    """If a rewrite was decided for fewer. They do not right after a rewrite."""
    done = Decision("new files", (), figures(1.0, 30.0), 9, 1, 1.5, Outcome(1.0, "/t", 1.0, 0), nothing(1.0, 1.5).at)
    assert wait(done, queries=60.0) is None
    assert wait(done, queries=59.0) is not None
    assert wait(done, queries=60.0, late=Span(1.0, 0.0, None)) is not None


SECONDS = st.floats(0.0, 1e6)


@given(*[SECONDS] * 5, st.lists(st.tuples(st.booleans(), SECONDS, SECONDS), min_size=1, max_size=5))
def test_right_after_a_search_there_is_none(
    mean: float, seconds: float, search: float, gain: float, queries: float, past: list[tuple[bool, float, float]]
) -> None:
    """Without a query since then, whatever was found: a search of the same facts finds the same."""
    done = Outcome(1.0, "/t", 1.0, 0)
    decisions = [
        Decision("new files", (), figures(seconds, queries), gain, 1, search + 0.1, done)
        if is_done
        else Decision("nothing", (), figures(seconds, queries), gain=0.0, cost=cost, search_seconds=search + 0.1)
        for is_done, gain, cost in past
    ]
    assert wait(*decisions, log=Span(20.0, queries, mean), late=Span(1.0, 0.0, None), queries=queries) is not None


def test_a_refusal_for_few_queries_is_looked_at_again() -> None:
    """Once so many are expected that it and another search pay, though the queries took little since."""
    for gain, too_soon in ((300.0, True), (600.0, False)):  # 40 queries gain four times as much
        refused = nothing(1.0, 1000.0, gain, 450.0)
        reason = wait(refused, log=FORTY_SECONDS, queries=40.0)
        assert ("to look for a layout took" in (reason or "")) == too_soon


def test_a_log_without_seconds() -> None:
    """Queries take as long as the last search estimated, so that it is not too soon for ever."""
    for mean, too_soon in ((0.02, True), (2.0, False)):
        reason = wait(nothing(mean, 1.0), log=NO_SECONDS, late=NO_SECONDS, queries=40.0)
        assert ("and to look for a layout took" in (reason or "")) == too_soon
