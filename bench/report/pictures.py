"""Draws the pictures of the pages of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.report.names import method
from bench.report.page import Beside, Section
from bench.report.plots import Bar, Curve, bars, curves
from bench.report.rows import figure_name
from bench.report.shown import shown


def pictures(section: Section) -> list[str]:
    """Draw a picture of each table's rows, the learning curves, and how the seconds of queries are distributed."""
    tables = dict.fromkeys((row.params.get("shape"), row.size) for row in section.rows)
    drawn = [_picture(section, *table) for table in tables]
    for size in dict.fromkeys(row.size for row in section.rows if row.curves):
        learning_curves = [
            Curve(row.name, [(seconds, best, mean) for seconds, _, best, mean in curve])
            for row in section.rows
            for curve in row.curves
            if row.size == size
        ]
        drawn.append(curves(f"{section.suite}, {size}: rows of the sample that the best tree reads", learning_curves))
    for row in section.rows:
        shares = {way: s for way, s in row.details.get("faster_than_source", {}).items() if way != "source"}
        if shares:
            title = f"{section.suite}, {row.name}: queries that are at most so many times faster than on the source"
            drawn.append(curves(title, _shares(shares), "×"))
    deciding = {row.name: row.details["decisions_ms"] for row in section.rows if "decisions_ms" in row.details}
    if deciding:
        drawn.append(curves(f"{section.suite}: scans that were decided within so long", _shares(deciding), " ms"))
    return drawn


def _shares(values_by_name: Mapping[str, Sequence[float]]) -> list[Curve]:
    """Return cumulative curves of quantiles: each value with the share of values below it."""
    return [
        Curve(name, [(v, i / (len(values) - 1)) for i, v in enumerate(values)])
        for name, values in values_by_name.items()
    ]


def _picture(section: Section, shape: object, size: str) -> str:
    figure = section.about.figure
    drawn = []
    for beside in section.beside:
        theirs = beside.theirs
        if theirs.params.get("shape") != shape:
            continue
        kind = "peer" if theirs.place == "the same run" else "theirs"
        name = f"{theirs.who} ({theirs.place})"
        if not theirs.figure:
            drawn.append(
                Bar(name, theirs.value, shown(figure, theirs.value), kind, _match(section) if kind != "peer" else None)
            )
    for row in section.rows:
        if (row.params.get("shape"), row.size) != (shape, size):
            continue
        if row.value is not None:
            name = method(row.learner, row.params) or section.suite
            drawn.append(Bar(name, row.value, shown(figure, row.value), "ours", row.bound))
        if row.unseen is not None:
            drawn.append(Bar("on unseen queries", row.unseen, shown(figure, row.unseen), "unseen"))
    title = ", ".join(filter(None, (section.suite, str(shape or ""), size)))
    return bars(f"{title}: {figure_name(section)}", drawn)


def _match(section: Section) -> float | None:
    """Return the share of rows that match in the paper's own data, if it says so."""
    return next((b.theirs.value for b in section.beside if b.theirs.figure == "bound"), None)


def theirs_and_ours(paper: str, pairs: Sequence[tuple[Section, Beside]]) -> str:
    """Draw the paper's shares of rows and ours, suite by suite; nothing, if it has none."""
    drawn = []
    for section, beside in sorted(pairs, key=lambda pair: pair[0].suite):
        theirs = beside.theirs
        if section.about.figure == "rows_read" and not theirs.figure and beside.value is not None:
            name = ", ".join(filter(None, (section.suite, str(theirs.params.get("shape", "")), theirs.who)))
            drawn.append(Bar(f"{name}, the paper", theirs.value, shown("rows_read", theirs.value), "theirs"))
            drawn.append(Bar("ours", beside.value, shown("rows_read", beside.value), "ours"))
    return bars(f"{paper}: rows read on the paper's data, and on ours", drawn) if drawn else ""
