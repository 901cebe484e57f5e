"""The lines that runs left behind: which of them measure the same, and the medians over seeds."""

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
    """All lines of the files, in their order."""
    found = []
    for file in files:
        for n, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                found.append(json.loads(text))
                assert isinstance(found[-1]["suite"], str)
            except (ValueError, KeyError, TypeError, AssertionError) as error:
                raise SystemExit(f"{file}, line {n}: this is no line of a benchmark") from error
    return found


def form(line: Line) -> str:
    found: str = line.get("params", {}).get("form", "full")
    return found


def label(line: Line) -> str:
    """The learner with its parameters.

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
    """Equal for lines that differ in their seed only."""
    return line["suite"], form(line), label(line), size(line)


def grouped(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines that differ in their seed only, in the order in which the first of each came."""
    found: dict[Any, list[Line]] = {}
    for line in lines:
        found.setdefault(same(line), []).append(line)
    return list(found.values())


def value(line: Line, figure: str) -> float | None:
    """A list of turns counts by its median."""
    found = line.get(figure)
    return float(median(found)) if isinstance(found, list) else None if found is None else float(found)


def middle(lines: Sequence[Line], figure: str) -> float | None:
    """The median over seeds."""
    found = [v for v in (value(line, figure) for line in lines) if v is not None]
    return median(found) if found else None
