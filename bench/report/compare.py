"""`python -m bench compare A B`: how the lines of two files differ, or those of two learners in one file.

Lines are compared that agree in suite, form, parameters, size and seed; of learners, in all but learner and parameters.
Each figure is the median over the seeds that both have, and each ratio the median of the seeds' ratios, B to A.
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
    what: str
    figure: str
    a: float
    b: float
    ratio: float | None  # None: a is 0
    seeds: int


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench compare", description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="one or two files of JSON lines")
    learners = parser.add_mutually_exclusive_group()
    learners.add_argument("--learners", nargs=2, metavar=("A", "B"), help="of one file: name, or name(key=value, ...)")
    given = parser.parse_args(arguments)
    if len(given.files) != (1 if given.learners else 2):
        parser.error("compare takes two files, or one and --learners A B")
    if given.learners:
        lines = read(given.files)
        a, b = ([line for line in lines if name in (line.get("learner"), label(line))] for name in given.learners)
        found, alone = by_learner(a, b)
    else:
        a, b = (read([file]) for file in given.files)
        found, alone = differences(a, b, lambda line: (line["suite"], form(line), label(line), size(line)))
    _show(found, alone)


def by_learner(a: Sequence[Line], b: Sequence[Line]) -> tuple[list[Difference], int]:
    """Each line of one learner beside each of the other's at the same place."""
    found: list[Difference] = []
    alone = 0
    for one in grouped(a):
        for other in grouped(b):
            more, _ = differences(one, other, lambda line: (line["suite"], form(line), size(line)))
            name = f"{label(one[0])} : {label(other[0])}"
            found += [Difference(f"{d.what} {name}", d.figure, d.a, d.b, d.ratio, d.seeds) for d in more]
    places = [{(x["suite"], form(x), size(x), x.get("seed")) for x in lines} for lines in (a, b)]
    alone = len(places[0] ^ places[1])
    return found, alone


def differences(
    a: Sequence[Line], b: Sequence[Line], key: Callable[[Line], tuple[Any, ...]]
) -> tuple[list[Difference], int]:
    """The figures of the lines that both have, and how many lines only one of them has; of lines repeated, the last."""
    first, second = ({(key(line), line.get("seed")): line for line in lines} for lines in (a, b))
    common: dict[Any, list[tuple[Line, Line]]] = {}
    for place, line in first.items():
        if place in second:
            common.setdefault(place[0], []).append((line, second[place]))
    found = [d for pairs in common.values() for d in _of(pairs)]
    return found, len(first.keys() ^ second.keys())


def _of(pairs: Sequence[tuple[Line, Line]]) -> list[Difference]:
    x, y = pairs[0]
    what = " ".join(filter(None, (x["suite"], form(x), label(x) if label(x) == label(y) else "")))
    found = []
    for figure in FIGURES:
        both = [(value(p, figure), value(q, figure)) for p, q in pairs]
        known = [(p, q) for p, q in both if p is not None and q is not None]
        if known:
            ratios = [q / p for p, q in known if p]
            ps, qs = zip(*known, strict=True)
            ratio = median(ratios) if ratios else None
            found.append(Difference(what, figure, median(ps), median(qs), ratio, len(known)))
    return found


def _show(found: Sequence[Difference], alone: int) -> None:
    console = Console()
    table = Table("", "figure", box=None)
    for name in ("A", "B", "B / A", "seeds"):
        table.add_column(name, justify="right")
    before = ""
    for d in found:
        ratio = "" if d.ratio is None else f"{d.ratio:.3f}"
        table.add_row("" if d.what == before else d.what, d.figure, f"{d.a:.6g}", f"{d.b:.6g}", ratio, str(d.seeds))
        before = d.what
    console.print(table)
    if alone:
        console.print(f"{alone} lines have no partner")
    if not found:
        raise SystemExit("no line has a partner: they differ in suite, form, parameters, size or seed")
