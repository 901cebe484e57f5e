"""What the page of results says, as plain values: ours, the papers' and the peers' figures of each suite.

The medians are over seeds. A suite shows its full form where lines of it are held, else its quick form, and says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.every_suite import EVERY, Suite
from bench.report.lines import Line, form, grouped, middle, value
from bench.report.names import PLAIN, is_default, is_published, method, table_of
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
    """One of our methods: medians over `seeds` runs, with the least and the most where there are several."""

    name: str
    size: str
    value: float | None
    spread: tuple[float, float] | None
    unseen: float | None
    bound: float | None
    bound_unseen: float | None
    blocks: float | None
    blocks_unseen: float | None  # the share of them that unseen queries read
    learn_seconds: float | None
    trees_per_s: float | None
    seeds: int
    commits: tuple[str, ...]
    params: Mapping[str, object]
    learner: str
    details: Mapping[str, Any]  # of the first seed
    curves: tuple[Any, ...]  # of learning, where it tells: of each seed lists of seconds, trees, best and mean

    @property
    def read(self) -> float:
        """What unseen queries read; where there are none, those that it learned from."""
        found = self.value if self.unseen is None else self.unseen
        assert found is not None
        return found

    @property
    def matching(self) -> float | None:
        """The rows that match the same queries."""
        return self.bound if self.unseen is None else self.bound_unseen


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure of others and ours; `worse`: by how much of it, 0 where we are not."""

    theirs: Theirs
    ours: Row | None
    value: float | None
    worse: float


@dataclass(frozen=True, slots=True)
class Section:
    suite: str
    about: Suite
    form: str
    rows: tuple[Row, ...]
    beside: tuple[Beside, ...]
    seconds: float | None  # what the runs took, a seed


@dataclass(frozen=True, slots=True)
class Gain:
    """On the same rows and queries: the best that people do without learning, the best of the papers' methods as
    published, and the best of our defaults. Either of the first two may be missing."""

    suite: str
    table: str
    plain: Row | None
    published: Row | None
    ours: Row

    @property
    def other(self) -> Row:
        """The best of the others."""
        return min((row for row in (self.plain, self.published) if row is not None), key=lambda row: row.read)

    @property
    def times(self) -> float:
        """How many times less than by the best of the others is read."""
        return self.other.read / self.ours.read


@dataclass(frozen=True, slots=True)
class Page:
    sections: tuple[Section, ...]

    @property
    def gains(self) -> list[Gain]:
        """The largest first."""
        found = [gain for section in self.sections for gain in _gains(section)]
        return sorted(found, key=lambda gain: -gain.times)

    @property
    def slower(self) -> list[tuple[Section, Beside]]:
        """Where a peer of the same run was better, the farthest first."""
        found = [(s, b) for s in self.sections for b in s.beside if b.worse > 0 and b.theirs in PEERS]
        return sorted(found, key=lambda pair: -pair[1].worse)

    @property
    def papers(self) -> list[tuple[Section, Beside]]:
        """The papers' figures, which are of other data: first those that are better than ours, the farthest first."""
        found = [(s, b) for s in self.sections for b in s.beside if b.theirs not in PEERS]
        return sorted(found, key=lambda pair: -pair[1].worse)

    @property
    def missing(self) -> list[str]:
        return [name for name in EVERY if name not in {s.suite for s in self.sections}]


def page(lines: Sequence[Line]) -> Page:
    unknown = {line["suite"] for line in lines} - set(EVERY)
    if unknown:
        raise SystemExit(f"there are lines of suites that do not exist: {', '.join(sorted(unknown))}")
    found = []
    for name, suite in EVERY.items():
        own = [line for line in lines if line["suite"] == name]
        full = [line for line in own if form(line) == "full"]
        if own:
            found.append(_section(name, suite, full or own))
    return Page(tuple(found))


def _section(name: str, suite: Suite, lines: Sequence[Line]) -> Section:
    of_size: dict[str, list[Row]] = {}
    for row in (_row(group, suite.figure) for group in grouped(lines)):
        of_size.setdefault(row.size, []).append(row)
    rows = tuple(row for of in of_size.values() for row in of)
    known = [t for t in (*THEIRS, *PEERS) if t.suite == name]
    seconds = sum(middle(g, "run_seconds") or 0.0 for g in grouped(lines))
    return Section(name, suite, form(lines[0]), rows, tuple(_beside(t, rows, suite.figure) for t in known), seconds)


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
        tuple(dict.fromkeys(line["commit"] for line in group)),
        params,
        learner,
        group[0].get("details", {}),
        tuple(line["curve"] for line in group if line.get("curve")),
    )


def _size(line: Line) -> str:
    rows = f"{line['rows']:,} rows" if "rows" in line else ""
    return ", ".join(filter(None, (f"SF {line['sf']:g}" if "sf" in line else "", line.get("month", ""), rows)))


def _beside(theirs: Theirs, rows: Sequence[Row], figure: str) -> Beside:
    """The best of our lines of the same method, or of all where there is none; of several sizes the one where we stand
    worst, and beside a peer, which every line was measured with, the worst line."""
    if theirs.figure == "bound":
        return Beside(theirs, rows[0], rows[0].bound, 0.0)
    less = figure not in MORE_IS_BETTER
    best, worst = (min, max) if less else (max, min)
    of_size: dict[object, list[tuple[float, int]]] = {}
    for i, row in enumerate(rows):
        value = _of_range(row, rows) if theirs.figure == OF_RANGE else row.value
        if value is not None and _is(theirs, row):
            of_size.setdefault(i if theirs in PEERS else row.size, []).append((value, i))
    if not of_size:
        return Beside(theirs, None, None, 0.0)
    value, at = worst(map(best, of_size.values()))
    by = value / theirs.value - 1 if less else theirs.value / value - 1
    return Beside(theirs, rows[at], value, by if by > NEAR else 0.0)


def _gains(section: Section) -> list[Gain]:
    """Of each of the section's tables, if it compares rows read and holds a default of ours and another's."""
    of_table: dict[str, list[Row]] = {}
    for row in section.rows if section.about.figure == "rows_read" and not section.about.is_study else ():
        if row.value is not None:
            of_table.setdefault(", ".join(filter(None, (table_of(row.params), row.size))), []).append(row)
    found = []
    for table, rows in of_table.items():
        plain = [row for row in rows if row.learner in PLAIN]
        published = [row for row in rows if is_published(row.learner, row.params)]
        ours = [row for row in rows if is_default(row.learner, row.params)]
        if ours and (plain or published):
            best = (min(some, key=lambda row: row.read, default=None) for some in (plain, published, ours))
            found.append(Gain(section.suite, table, *best))  # type: ignore[arg-type]
    return found


def _of_range(row: Row, rows: Sequence[Row]) -> float | None:
    """The blocks that unseen queries read, beside those they read where tables of this size are sorted by hand."""
    of_sorted = next((r.blocks_unseen for r in rows if r.learner == "range" and r.size == row.size), None)
    return row.blocks_unseen / of_sorted if row.blocks_unseen is not None and of_sorted else None


def _is(theirs: Theirs, row: Row) -> bool:
    def own(params: Mapping[str, object]) -> dict[str, object]:
        return {name: v for name, v in params.items() if name not in ("form", "recurrence", "budget_seconds")}

    return not theirs.learner or (row.learner, own(row.params)) == (theirs.learner, own(theirs.params))
