"""`python -m bench`: options reach the suite, records go to stdout and to a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.__main__ import main


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    main()


def test_each_seed_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lines.jsonl"
    options = ["--learner", "qdtree", "--param", "criterion=gain_ratio", "--param", "cells=1", "--json", str(file)]
    _run(monkeypatch, "fig3", "--quick", "--seed", "5", "--seeds", "2", *options)
    printed = capsys.readouterr().out
    lines = [json.loads(text) for text in printed.splitlines()]
    assert [found["seed"] for found in lines] == [5, 6]
    assert lines[0]["params"] == {"form": "quick", "criterion": "gain_ratio", "cells": 1}
    assert file.read_text() == printed


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--param", "cells=1"], "name the learner with --learner"),
        (["--learner", "qdtree", "--param", "cells"], "key=value"),
        (["--learner", "qdtree", "--param", "=1"], "key=value"),
        (["--month", "1995-13"], "--month"),
    ],
)
def test_options_that_say_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        _run(monkeypatch, "fig3", "--quick", *arguments)
    assert why in str(stopped.value) + capsys.readouterr().err
