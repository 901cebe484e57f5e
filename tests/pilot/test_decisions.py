"""Decisions are read back from their notes; a damaged note is never taken for a decision."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest

from hedgerow.pilot.cost import corrected_cost
from hedgerow.pilot.decision import Decision, Figures, Outcome, decision_from_json
from hedgerow.pilot.history import History

OUTCOME = Outcome(3.5, "/t", 5e6, 3, 1, "p1")
FIGURES = Figures(9e9, 5e6, 10.0, 2.0, 1.0, 1e-8, seconds_described=1.5)
AT = "2026-01-01T10:00:00.000+00:00"
WHOLE = Decision("whole table", ("it pays", "so"), FIGURES, 9.0, 2.0, 1.5, OUTCOME, AT)
REFUSED = Decision("nothing", (), FIGURES, 9.0, 20.0, 1.5, None, AT)
PARTS = {"figures": asdict(FIGURES), "outcome": asdict(OUTCOME)}
DAMAGED = (ValueError, KeyError, TypeError, OverflowError)


@pytest.mark.parametrize("decision", [WHOLE, REFUSED, Decision("nothing", ("too soon",), at=AT)])
def test_a_decision_comes_back(decision: Decision) -> None:
    saved = json.loads(json.dumps(asdict(decision)))
    assert decision_from_json(saved) == decision
    for name in saved:
        with pytest.raises(KeyError):
            decision_from_json({other: value for other, value in saved.items() if other != name})


@pytest.mark.parametrize("rubbish", [None, "x", "2026-01-01", [], ["x"], {}, {"now": "x"}, 7, -1e400, True])
@pytest.mark.parametrize("decision", [WHOLE, REFUSED])
def test_whatever_one_of_its_fields_is(decision: Decision, rubbish: Any) -> None:
    """It is a decision that the next look can use, or an error that leaves it out."""
    saved = json.loads(json.dumps(asdict(decision)))
    for name in saved:
        with suppress(*DAMAGED):
            read = decision_from_json({**saved, name: rubbish})
            assert read.at == AT
            look_at(read)
    for part, values in PARTS.items():
        for name in values:
            with suppress(*DAMAGED):
                look_at(decision_from_json({**saved, part: {**values, name: rubbish}}))


def look_at(read: Decision) -> None:
    history = History([read], 1e9)
    try:
        str(read), read.expected_seconds, history.last_search
        assert read.found_nothing(1.5) in (True, False) and read.would_pay(20, 1.5) in (True, False)
        history.times_moved(1), history.bytes_rewritten, history.days_since_whole
        corrected_cost(None, history.rewrites), history.searches_without_result(1.5)
        10 * read.search_seconds
    except DAMAGED as error:
        pytest.fail(f"{read} is taken for a decision: {error!r}")
