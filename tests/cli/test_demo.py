"""`hedgerow demo`, on a small table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hedgerow import demo as story


@pytest.mark.long  # `make wheel` runs the demo too
@pytest.mark.parametrize("is_delta", [True, False])
def test_the_whole_story(
    run: Callable[..., Any],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_delta: bool,
) -> None:
    request.getfixturevalue("delta" if is_delta else "spark")
    monkeypatch.setattr(story.delta_log, "has_delta", lambda spark: is_delta)
    report = tmp_path / "report.html"
    answer = run("demo", "--scale", 0.01, "--html", report, "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert told["rows"] == 60_175
    assert told["files"] > 4
    assert max(told["rows_read"]) < 0.5
    others = {story.AS_IT_CAME, story.BY_ZORDER} if is_delta else {story.AS_IT_CAME}
    assert set(told["times_faster"]) == others
    assert "<h2>The tree</h2>" in report.read_text()


@pytest.mark.usefixtures("spark")
def test_without_the_maker_of_tables(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story.sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "")
    answer = run("demo")
    assert answer.exit_code == 1
    assert (
        answer.stderr == "error: the tables of TPC-H need tpchgen-cli, which is missing: pip install 'hedgerow[demo]'\n"
    )
