"""`python -m bench compare A B`: compare the lines of two files, or those of two learners in one file.

Two lines are compared if they agree in suite, form, parameters, size and seed; lines of two learners may differ in
learner and parameters. Each figure is the median over the common seeds, each ratio the median of the ratios B to A.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.report.lines import FIGURES, Line, form, grouped, label, read, size, value


@dataclass(frozen=True, slots=True)
class Difference:
    """Medians of a figure in both sets of lines."""

    compared: str
    figure: str
    a: float
    b: float
    ratio: float | None  # None: a is 0
    seeds: int


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench compare", description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="one or two files of JSON lines")
    learners = parser.add_mutually_exclusive_group()
    learners.add_argument(
        "--learners", nargs=2, metavar=("A", "B"), help="two learners of one file: name, or name(key=value, ...)"
    )
    options = parser.parse_args(arguments)
    if len(options.files) != (1 if options.learners else 2):
        parser.error("compare takes two files, or one and --learners A B")
    if options.learners:
        lines = read(options.files)
        a, b = ([line for line in lines if name in (line.get("learner"), label(line))] for name in options.learners)
        matched, unmatched = by_learner(a, b)
    else:
        a, b = (read([file]) for file in options.files)
        matched, unmatched = differences(a, b, lambda line: (line["suite"], form(line), label(line), size(line)))
    _show(matched, unmatched)


def by_learner(a: Sequence[Line], b: Sequence[Line]) -> tuple[list[Difference], int]:
    """Compare each line of A with each of B of the same suite, form and size; also return the number of unmatched."""
    matched: list[Difference] = []
    for lines_of_a in grouped(a):
        for lines_of_b in grouped(b):
            of_pair, _ = differences(lines_of_a, lines_of_b, lambda line: (line["suite"], form(line), size(line)))
            name = f"{label(lines_of_a[0])} : {label(lines_of_b[0])}"
            matched += [Difference(f"{d.compared} {name}", d.figure, d.a, d.b, d.ratio, d.seeds) for d in of_pair]
    places = [{(x["suite"], form(x), size(x), x.get("seed")) for x in lines} for lines in (a, b)]
    unmatched = len(places[0] ^ places[1])
    return matched, unmatched


def differences(
    a: Sequence[Line], b: Sequence[Line], key: Callable[[Line], tuple[Any, ...]]
) -> tuple[list[Difference], int]:
    """Compare lines with equal keys; also return the number of unmatched lines. Of repeated lines the last counts."""
    first, second = ({(key(line), line.get("seed")): line for line in lines} for lines in (a, b))
    common: dict[Any, list[tuple[Line, Line]]] = {}
    for place, line in first.items():
        if place in second:
            common.setdefault(place[0], []).append((line, second[place]))
    matched = [d for pairs in common.values() for d in _differences_of(pairs)]
    return matched, len(first.keys() ^ second.keys())


def _differences_of(pairs: Sequence[tuple[Line, Line]]) -> list[Difference]:
    x, y = pairs[0]
    compared = " ".join(filter(None, (x["suite"], form(x), label(x) if label(x) == label(y) else "")))
    rows = []
    for figure in FIGURES:
        both = [(value(p, figure), value(q, figure)) for p, q in pairs]
        values = [(p, q) for p, q in both if p is not None and q is not None]
        if values:
            ratios = [q / p for p, q in values if p]
            ps, qs = zip(*values, strict=True)
            ratio = median(ratios) if ratios else None
            rows.append(Difference(compared, figure, median(ps), median(qs), ratio, len(values)))
    return rows


def _show(matched: Sequence[Difference], unmatched: int) -> None:
    console = Console()
    table = Table("", "figure", box=None)
    for name in ("A", "B", "B / A", "seeds"):
        table.add_column(name, justify="right")
    before = ""
    for d in matched:
        ratio = "" if d.ratio is None else f"{d.ratio:.3f}"
        table.add_row(
            "" if d.compared == before else d.compared, d.figure, f"{d.a:.6g}", f"{d.b:.6g}", ratio, str(d.seeds)
        )
        before = d.compared
    console.print(table)
    if unmatched:
        console.print(f"{unmatched} lines have no partner")
    if not matched:
        raise SystemExit("no line has a partner: they differ in suite, form, parameters, size or seed")
