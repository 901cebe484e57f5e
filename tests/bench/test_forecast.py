"""The suite that compares layouts learned with the autopilot's forecast and without it."""

from __future__ import annotations

import pytest

from bench.options import Options
from bench.suites import forecast


def test_dashboards_that_move_read_less(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: forecast.HISTORIES[name] for name in ("constant", "yesterday", "last 7 days")}
    monkeypatch.setattr(forecast, "HISTORIES", some)
    constant, yesterday, week = forecast.run(Options(form="quick"))
    assert constant["ratio"] == constant["details"]["ratio_of_the_week"] == 1
    assert yesterday["ratio"] < 0.9 and week["details"]["ratio_of_the_week"] < 0.95


def test_a_forecast_keeps_the_weight_of_the_log() -> None:
    days, ask = forecast.HISTORIES["last 7 days"]
    r = forecast.np.random.default_rng(0)
    asked = [(day + 0.5, text) for day in range(days) for text in ask(day, r)]
    ours, plain = (forecast.recent_log(asked, kind).workload("t", 200) for kind in (True, False))
    assert sum(q.weight for q in ours) == pytest.approx(sum(q.weight for q in plain))
    assert {q.text for q in ours} != {q.text for q in plain}
