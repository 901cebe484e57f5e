"""Long steps are named where there is no terminal, and short ones are not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hedgerow.spark.start import progress


def test_only_long_steps_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    spark: Any = None
    with progress.step(spark, "a short step"):
        pass
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.01)
    with progress.step(spark, "a long step"):
        time.sleep(0.2)
    assert capsys.readouterr().err == "hedgerow: a long step ...\n"
