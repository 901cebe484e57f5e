"""Warnings for users are short; what they leave out is in the log."""

from __future__ import annotations

import logging

import pytest

from hedgerow.core.errors import HedgerowWarning, warn

LONG = "x IN (" + ", ".join(map(str, range(200))) + ") OR y = 7"


def test_a_long_list_is_shortened_and_all_of_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    sentences = [f"query q{n} is left out: {LONG}" for n in range(40)]
    with caplog.at_level(logging.INFO, "hedgerow"), pytest.warns(HedgerowWarning) as caught:
        warn("40 of 50 queries are left out", sentences)
    first, *few, more = str(caught[0].message).splitlines()
    assert first == "40 of 50 queries are left out:"
    assert len(few) == 5 and max(map(len, few)) < 250
    assert few[4].startswith("  query q4 is left out: x IN (") and few[4].endswith("OR y = 7")
    assert more == "  and 35 more; level INFO of the log hedgerow, or --debug on the command line, lists all"
    assert [record.getMessage().splitlines()[1:] for record in caplog.records] == [[f"  {s}" for s in sentences]]


def test_a_short_list_is_all_there_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hedgerow"), pytest.warns(HedgerowWarning) as caught:
        warn("2 keys cannot be followed", ["one", "another"])
        warn("1 key cannot be followed", [LONG])
        warn("nothing", [])
    assert str(caught[0].message) == "2 keys cannot be followed:\n  one\n  another"
    assert len(caught) == 2 and len(str(caught[1].message)) < 300
    assert [record.getMessage() for record in caplog.records] == [f"1 key cannot be followed:\n  {LONG}"]
