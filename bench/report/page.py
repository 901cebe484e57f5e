"""The page of results as plain values: our figures of each suite, beside those of the papers and of peers.

Medians are over seeds. A suite shows its full form if there are lines of it, else its quick form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.every_suite import EVERY, Suite
from bench.report.lines import Line, form, grouped, middle, seconds, value
from bench.report.names import PLAIN, is_default, is_published, is_published_layout, method, table_of
from bench.report.published_figures import NEAR, OF_RANGE, PEERS, THEIRS, Theirs

MORE_IS_BETTER = ("mrows_per_s",)
FIGURES = {
    "rows_read": "rows read",
    "p99_ms": "99th percentile",
    "ratio": "of what it takes without us",
    "mrows_per_s": "million rows a second",
    "learn_seconds": "seconds of learning",
    OF_RANGE: "blocks that unseen queries read, of those they read of sorted tables",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One of our methods: medians over `seeds` runs, and the least and the most if there are several runs."""

    name: str
    size: str
    value: float | None
    spread: tuple[float, float] | None
    unseen: float | None
    bound: float | None
    bound_unseen: float | None
    blocks: float | None
    blocks_unseen: float | None  # share of the blocks that unseen queries read
    learn_seconds: float | None
    trees_per_s: float | None
    seeds: int
    commits: tuple[str, ...]
    params: Mapping[str, object]
    learner: str
    details: Mapping[str, Any]  # of the first seed
    curves: tuple[Any, ...]  # learning curves, one a seed, if there are any: points of seconds, trees, best and mean

    @property
    def read(self) -> float:
        """The share that unseen queries read; in suites without unseen queries, that of the learned ones."""
        share = self.value if self.unseen is None else self.unseen
        assert share is not None
        return share

    @property
    def matching(self) -> float | None:
        """The share of rows that match the same queries."""
        return self.bound if self.unseen is None else self.bound_unseen


@dataclass(frozen=True, slots=True)
class Beside:
    """A published or peer's figure beside ours; `worse`: how much worse ours is, as a share of theirs, or 0."""

    theirs: Theirs
    ours: Row | None
    value: float | None
    worse: float


@dataclass(frozen=True, slots=True)
class Section:
    """A suite's part of the page."""

    suite: str
    about: Suite
    form: str
    rows: tuple[Row, ...]
    beside: tuple[Beside, ...]
    seconds: float | None  # of all runs of one seed


@dataclass(frozen=True, slots=True)
class Gain:
    """The best methods on the same rows and queries: without learning, as published, and our default learners.

    `our_index`: the best published layout that is read with our index. Of the first three, two may be missing.
    """

    suite: str
    table: str
    plain: Row | None
    published: Row | None
    our_index: Row | None
    ours: Row

    @property
    def others(self) -> tuple[Row | None, Row | None, Row | None]:
        return self.plain, self.published, self.our_index

    @property
    def best_other(self) -> Row:
        """The best of the methods that are not ours."""
        return min((row for row in self.others if row is not None), key=lambda row: row.read)

    @property
    def times(self) -> float:
        """How many times more the best other method reads."""
        return self.best_other.read / self.ours.read


@dataclass(frozen=True, slots=True)
class Page:
    sections: tuple[Section, ...]

    @property
    def gains(self) -> list[Gain]:
        """The largest first."""
        unsorted = [gain for section in self.sections for gain in _gains(section)]
        return sorted(unsorted, key=lambda gain: -gain.times)

    @property
    def slower(self) -> list[tuple[Section, Beside]]:
        """Figures that are worse than those of a peer in the same run, the worst first."""
        pairs = [(s, b) for s in self.sections for b in s.beside if b.worse > 0 and b.theirs in PEERS]
        return sorted(pairs, key=lambda pair: -pair[1].worse)

    @property
    def papers(self) -> list[tuple[Section, Beside]]:
        """The papers' figures, which are of other data, the one farthest ahead of ours first."""
        pairs = [(s, b) for s in self.sections for b in s.beside if b.theirs not in PEERS]
        return sorted(pairs, key=lambda pair: -pair[1].worse)

    @property
    def missing(self) -> list[str]:
        return [name for name in EVERY if name not in {s.suite for s in self.sections}]


def page(lines: Sequence[Line]) -> Page:
    unknown = {line["suite"] for line in lines} - set(EVERY)
    if unknown:
        raise SystemExit(f"there are lines of suites that do not exist: {', '.join(sorted(unknown))}")
    sections = []
    for name, suite in EVERY.items():
        own = [line for line in lines if line["suite"] == name]
        full = [line for line in own if form(line) == "full"]
        if own:
            sections.append(_section(name, suite, full or own))
    return Page(tuple(sections))


def _section(name: str, suite: Suite, lines: Sequence[Line]) -> Section:
    by_size: dict[str, list[Row]] = {}
    for row in (_row(group, suite.figure) for group in grouped(lines)):
        by_size.setdefault(row.size, []).append(row)
    rows = tuple(row for of in by_size.values() for row in of)
    compared = [t for t in (*THEIRS, *PEERS) if t.suite == name]
    return Section(
        name, suite, form(lines[0]), rows, tuple(_beside(t, rows, suite.figure) for t in compared), seconds(lines)
    )


def _row(group: Sequence[Line], figure: str) -> Row:
    values = [v for v in (value(line, figure) for line in group) if v is not None]
    params, learner = group[0].get("params", {}), group[0].get("learner", "")
    return Row(
        ": ".join(filter(None, (table_of(params), method(learner, params)))) or group[0]["suite"],
        _size(group[0]),
        middle(group, figure),
        (min(values), max(values)) if len(values) > 1 else None,
        middle(group, f"{figure}_unseen"),
        middle(group, "bound"),
        middle(group, "bound_unseen"),
        middle(group, "blocks"),
        middle(group, "blocks_read_unseen"),
        middle(group, "learn_seconds") or middle(group, "fit_seconds"),
        middle(group, "trees_per_s"),
        len(group),
        tuple(dict.fromkeys(f"{line['commit']}{'†' if line.get('older') else ''}" for line in group)),
        params,
        learner,
        group[0].get("details", {}),
        tuple(line["curve"] for line in group if line.get("curve")),
    )


def _size(line: Line) -> str:
    rows = f"{line['rows']:,} rows" if "rows" in line else ""
    return ", ".join(filter(None, (f"SF {line['sf']:g}" if "sf" in line else "", line.get("month", ""), rows)))


def _beside(theirs: Theirs, rows: Sequence[Row], figure: str) -> Beside:
    """Set our best line of the same method beside a figure; without a method, the best of all lines.

    If there are several sizes, the size counts in which we are worst. A peer was measured with every line: beside it
    the worst line counts.
    """
    if theirs.figure == "bound":
        return Beside(theirs, rows[0], rows[0].bound, 0.0)
    less = figure not in MORE_IS_BETTER
    best, worst = (min, max) if less else (max, min)
    by_size: dict[object, list[tuple[float, int]]] = {}
    for i, row in enumerate(rows):
        value = _share_of_range(row, rows) if theirs.figure == OF_RANGE else row.value
        if value is not None and _is_same_method(theirs, row):
            by_size.setdefault(i if theirs in PEERS else row.size, []).append((value, i))
    if not by_size:
        return Beside(theirs, None, None, 0.0)
    value, at = worst(map(best, by_size.values()))
    by = value / theirs.value - 1 if less else theirs.value / value - 1
    return Beside(theirs, rows[at], value, by if by > NEAR else 0.0)


def _gains(section: Section) -> list[Gain]:
    """Return the gain on each table where rows read are compared, and both a default of ours and another method ran."""
    by_table: dict[str, list[Row]] = {}
    for row in section.rows if section.about.figure == "rows_read" and not section.about.is_study else ():
        if row.value is not None:
            by_table.setdefault(", ".join(filter(None, (table_of(row.params), row.size))), []).append(row)
    gains = []
    for table, rows in by_table.items():
        plain = [row for row in rows if row.learner in PLAIN]
        published = [row for row in rows if is_published(row.learner, row.params)]
        our_index = [row for row in rows if is_published_layout(row.learner, row.params)]
        ours = [row for row in rows if is_default(row.learner, row.params)]
        if ours and (plain or published or our_index):
            best = (min(some, key=lambda row: row.read, default=None) for some in (plain, published, our_index, ours))
            gains.append(Gain(section.suite, table, *best))  # type: ignore[arg-type]
    return gains


def _share_of_range(row: Row, rows: Sequence[Row]) -> float | None:
    """Return the blocks that unseen queries read, divided by the number they read of sorted tables of this size."""
    of_sorted = next((r.blocks_unseen for r in rows if r.learner == "range" and r.size == row.size), None)
    return row.blocks_unseen / of_sorted if row.blocks_unseen is not None and of_sorted else None


def _is_same_method(theirs: Theirs, row: Row) -> bool:
    def own(params: Mapping[str, object]) -> dict[str, object]:
        return {name: v for name, v in params.items() if name not in ("form", "recurrence", "budget_seconds")}

    return not theirs.learner or (row.learner, own(row.params)) == (theirs.learner, own(theirs.params))
