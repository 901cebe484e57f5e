"""Read the lines of runs, group repeated measurements, and take medians over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.record import FIELDS

Line = Mapping[str, Any]
SIZE = ("sf", "month", "rows", "block_rows", "queries", "queries_unseen")
_OTHER = ("suite", "learner", "params", "details", "seed", "commit", "versions")
FIGURES = tuple(name for name in FIELDS if name not in (*SIZE, *_OTHER))


def read(files: Iterable[Path]) -> list[Line]:
    """Return all lines of the files, in their order."""
    lines = []
    for file in files:
        for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                lines.append(json.loads(text))
                assert isinstance(lines[-1]["suite"], str)
            except (ValueError, KeyError, TypeError, AssertionError) as error:
                raise SystemExit(f"{file}, line {n}: not a line of a benchmark") from error
    return lines


def form(line: Line) -> str:
    name: str = line.get("params", {}).get("form", "full")
    return name


def label(line: Line) -> str:
    """Return the learner with its parameters.

    >>> label({"learner": "qdtree", "params": {"form": "quick", "cells": 1}})
    'qdtree(cells=1)'
    """
    own = {name: value for name, value in line.get("params", {}).items() if name != "form"}
    shown = ", ".join(f"{name}={value}" for name, value in own.items())
    learner = line.get("learner", "")
    return f"{learner}({shown})" if learner and shown else learner or shown


def size(line: Line) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in SIZE)


def same(line: Line) -> tuple[Any, ...]:
    """Return a key that is equal for lines that differ in their seed only."""
    return line["suite"], form(line), label(line), size(line)


def grouped(lines: Iterable[Line]) -> list[list[Line]]:
    """Group lines that differ in their seed only, in the order of each group's first line."""
    groups: dict[Any, list[Line]] = {}
    for line in lines:
        groups.setdefault(same(line), []).append(line)
    return list(groups.values())


def value(line: Line, figure: str) -> float | None:
    """Return a figure of a line; of a list of turns, the median."""
    measured = line.get(figure)
    return float(median(measured)) if isinstance(measured, list) else None if measured is None else float(measured)


def middle(lines: Sequence[Line], figure: str) -> float | None:
    """Return the median over seeds."""
    values = [v for v in (value(line, figure) for line in lines) if v is not None]
    return median(values) if values else None


def seconds(lines: Iterable[Line]) -> float:
    """Return how long the runs took that left these lines, for one seed."""
    return sum(middle(group, "run_seconds") or 0.0 for group in grouped(lines))
