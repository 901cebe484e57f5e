"""Lines find their partners by suite, parameters, size and seed; figures are medians over seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.report import compare


def line(seed: int, read: float, rows: int = 100, **more: Any) -> dict[str, Any]:
    own = {"suite": "fig3", "learner": "qdtree", "params": {"form": "quick"}, "rows": rows, "seed": seed}
    return {**own, "rows_read": read, **more}


def _files(tmp_path: Path, *several: list[dict[str, Any]]) -> list[str]:
    files = []
    for name, lines in zip("ab", several, strict=False):
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("".join(json.dumps(one) + "\n" for one in lines))
    return list(map(str, files))


def test_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = [line(0, 0.2), line(1, 0.4), line(2, 0.4), line(0, 0.9, rows=7)]
    b = [line(2, 0.1), line(1, 0.3), line(0, 0.2), line(0, 0.9, params={"form": "full"})]
    compare.main(_files(tmp_path, a, b))
    out = capsys.readouterr().out
    figures = next(text for text in out.splitlines() if "rows_read" in text).split()
    assert figures[-5:] == ["rows_read", "0.4", "0.2", "0.750", "3"]  # the ratios of the seeds are 1, .75 and .25
    assert "2 lines have no partner" in out


def test_two_learners_of_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = {"form": "quick", "cells": 1}
    lines = [line(0, 0.5, learner="random"), line(0, 0.25), line(0, 0.3, params=params), line(0, 0.1, rows=7)]
    compare.main([*_files(tmp_path, lines), "--learners", "random", "qdtree"])
    out = capsys.readouterr().out
    assert "random : qdtree(cells=1)" in out
    ratios = [text.split()[-2] for text in out.splitlines() if "rows_read" in text]
    assert ratios == ["0.500", "0.600"]
    assert "1 lines have no partner" in out
    compare.main([*_files(tmp_path, lines), "--learners", "random", "qdtree(cells=1)"])
    assert [t.split()[-2] for t in capsys.readouterr().out.splitlines() if "rows_read" in t] == ["0.600"]


@pytest.mark.parametrize("arguments", [[], ["a.jsonl"], ["a.jsonl", "b.jsonl", "--learners", "x", "y"]])
def test_two_of_them(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(arguments)


def test_nothing_in_common(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no line has a partner"):
        compare.main(_files(tmp_path, [line(0, 0.2)], [line(1, 0.2)]))
