"""What the autopilot decided is read back from its notes; what is damaged in them is never taken for a decision."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import pytest

from hedgerow.pipeline.autopilot import _moved_lately, _real_runs
from hedgerow.pipeline.decisions import Decision, noted

AFTER = {"seconds": 3.5, "path": "/t", "bytes": 5e6, "items": 3, "times": 1, "part": "s1"}
FACTS = {"queries": 10.0, "now": 2.0, "then": 1.0, "fixed": 0.0, "rate": 1e-8}
SPEED = {"query": 0.1, "file": 0.01, "byte": 1e-9, "unskipped": 0.5}
AT = "2026-01-01T10:00:00.000+00:00"
WHOLE = Decision(AT, "t", "whole table", ("it pays", "so"), FACTS, 9.0, 2.0, True, AFTER, 1.5, SPEED)
REFUSED = Decision(AT, "t", "nothing", (), FACTS, 9.0, 20.0, False, None, 1.5, SPEED)


@pytest.mark.parametrize("decision", [WHOLE, REFUSED, Decision(AT, "t", "nothing", ("too soon",), {})])
def test_a_decision_comes_back(decision: Decision) -> None:
    saved = json.loads(json.dumps(asdict(decision)))
    assert noted(saved) == decision
    kept = {name: value for name, value in saved.items() if name not in ("looked", "speed")}  # as an older one is
    assert noted(kept).speed is None and noted(kept).at == AT


@pytest.mark.parametrize("rubbish", [None, "x", "2026-01-01", [], ["x"], {}, {"now": "x"}, 7, -1e400, True])
@pytest.mark.parametrize("decision", [WHOLE, REFUSED])
def test_whatever_one_of_its_fields_is(decision: Decision, rubbish: Any) -> None:
    """It is a decision that the next look can live with, or an error that passes over it."""
    saved = json.loads(json.dumps(asdict(decision)))
    for name in saved:
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            read = noted({**saved, name: rubbish})
            assert read.at == AT
            look_at(read)
    for name in AFTER:
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            look_at(noted({**saved, "after": {**AFTER, name: rubbish}}))


def look_at(read: Decision) -> None:
    try:
        str(read), read.measured, read.rewriting, read.promised
        assert read.is_in_vain(1.5) in (True, False) and read.would_pay(20, 1.5) in (True, False)
        _moved_lately([read], 1e9, 1), _real_runs([read])
        10 * read.looked
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        pytest.fail(f"{read} is taken for a decision: {error!r}")
