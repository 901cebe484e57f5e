"""`python -m bench paper`: each suite in turn; a run that was cut off goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import papers
from bench.every_suite import EVERY


def test_papers_name_suites() -> None:
    assert {name for names in papers.SUITES_OF.values() for name in names} <= set(EVERY)


def test_what_has_run_on_this_commit_does_not_run_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines.jsonl"
    earlier = {"suite": "fig4", "params": {"form": "quick"}, "seed": 0, "commit": "abc"}
    file.write_text(json.dumps(earlier) + "\n" + json.dumps({**earlier, "seed": 2, "commit": "older"}) + "\n")
    monkeypatch.setattr(papers, "SUITES_OF", {"qdtree": ("fig4", "fig4-physical")})
    monkeypatch.setattr(papers, "commit", lambda: "abc")
    papers.main(["qdtree", "--quick", "--seeds", "2", "--json", str(file)])
    assert [line["seed"] for line in map(json.loads, file.read_text().splitlines())] == [0, 2, 1, 1]
    assert "1 of 2 runs are left" in capfd.readouterr().err


def test_a_suite_that_fails_leaves_no_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    monkeypatch.setattr(papers, "SUITES_OF", {"qdtree": ("fig3",)})
    monkeypatch.setattr(papers, "_minutes", lambda name, form: 1.0)
    monkeypatch.setattr(papers.sys, "executable", "false")
    with pytest.raises(SystemExit):
        papers.main(["qdtree", "--quick", "--json", str(file)])
    assert not file.exists()
