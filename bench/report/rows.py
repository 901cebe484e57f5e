"""The figures of the page of results as rows of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.every_suite import EVERY, PHYSICAL
from bench.report.names import method, table_of
from bench.report.page import FIGURES, Beside, Gain, Page, Row, Section
from bench.report.published_figures import OF_RANGE
from bench.report.shown import shown

OF_OURS = ("unrouted", "routed", "attached", "attached, Delta")
OTHER_WAYS = {
    **{"source": "as it came", "again": "written again by Spark", "sorted": "sorted"},
    **{"zorder": "ZORDER", "clustering": "liquid clustering"},
}


def gains(contents: Page) -> list[tuple[str, ...]]:
    """Return a row for each table with other methods beside ours, the largest gain first."""
    return [_gain(gain) for gain in contents.gains]


def _gain(gain: Gain) -> tuple[str, ...]:
    rows = [row for row in (*gain.others, gain.ours) if row is not None]
    others = [_read(row, gain.suite) for row in gain.others]
    commits = ", ".join(dict.fromkeys(commit for row in rows for commit in row.commits))
    ours = f"**{_read(gain.ours, gain.suite)}**"
    bound = shown("rows_read", gain.ours.matching)
    return f"{gain.suite}, {gain.table}", *others, ours, f"{gain.times:.2f}×", bound, commits


def _read(row: Row | None, suite: str) -> str:
    return "" if row is None else f"{shown('rows_read', row.read)} ({method(row.learner, row.params) or suite})"


def seconds(contents: Page) -> list[tuple[str, ...]]:
    """Return a row for each table that was written beside peers, the largest gain first."""
    races = sorted(raced(contents), key=lambda race: race.ours / race.best)
    return [
        (
            race.table,
            f"{race.seconds['source']:.1f} s",
            f"{race.best:.1f} s ({OTHER_WAYS[race.best_way]})",
            f"**{race.ours:.1f} s** ({method(race.row.learner, {})})",
            ", ".join(race.row.commits),
        )
        for race in races
    ]


@dataclass(frozen=True, slots=True)
class Race:
    """The seconds of all queries of a suite over several layouts of one table."""

    suite: str
    table: str
    row: Row
    seconds: Mapping[str, float]

    @property
    def best_way(self) -> str:
        """The best of the layouts that a user could have made without us."""
        return min((way for way in self.seconds if way in OTHER_WAYS), key=self.seconds.__getitem__)

    @property
    def best(self) -> float:
        return self.seconds[self.best_way]

    @property
    def ours(self) -> float:
        return self.seconds["attached"]


def raced(contents: Page) -> list[Race]:
    """Return the written tables with times of other layouts beside those of ours."""
    races = []
    for section in contents.sections:
        for row in section.rows:
            took = row.details.get("seconds")
            if isinstance(took, Mapping) and {"source", "sorted", "attached"} <= set(took):
                engine = f"under {str(row.params['engine']).capitalize()}" if "engine" in row.params else ""
                names = section.suite.removesuffix(PHYSICAL), table_of(row.params), row.size, engine
                races.append(Race(section.suite, ", ".join(filter(None, names)), row, took))
    return races


def slower(contents: Page) -> list[str]:
    """Return a sentence for each peer of the same run that was better, the largest distance first."""
    return [_sentence(section, beside) for section, beside in contents.slower]


def _sentence(section: Section, beside: Beside) -> str:
    theirs, ours = beside.theirs, beside.ours
    assert ours is not None
    figure = theirs.figure or section.about.figure
    comparison = f"{shown(figure, beside.value)} ({ours.name}) against {shown(figure, theirs.value)} ({theirs.who})"
    quick = ", in the quick form" if section.form == "quick" else ""
    return f"{section.suite}: {FIGURES[figure]} {comparison}{quick}"


def cells(section: Section, row: Row) -> tuple[str, ...]:
    figure = section.about.figure
    spread = "" if row.spread is None else " [{}, {}]".format(*(shown(figure, v).split(" ")[0] for v in row.spread))
    return (
        row.name,
        row.size + storage(row),
        shown(figure, row.value) + spread,
        shown(figure, row.unseen),
        shown("rows_read", row.bound),
        "" if row.blocks is None else f"{row.blocks:,.0f}",
        learning(row),
        str(row.seeds),
        ", ".join(row.commits),
    )


def storage(row: Row) -> str:
    """Return the rows stored for each row of the table and the size of the index, in suites that compare these."""
    stored = row.details.get("stored")
    return "" if stored is None else f", stored {stored:.2f}×, index {row.details['index_mb']:.2g} MB"


def learning(row: Row) -> str:
    if row.learn_seconds is None:
        return ""
    rate = "" if row.trees_per_s is None else f", {row.trees_per_s:.3g} trees/s"
    return f"{row.learn_seconds:,.1f} s{rate}"


def ways(section: Section) -> list[tuple[str, ...]]:
    """Return the seconds of queries on each written table."""
    rows: list[tuple[str, ...]] = []
    for row in section.rows:
        for way, shares in row.details.get("faster_than_source", {}).items():
            name = f"{row.name}, {way}" if way in OF_OURS else way
            faster = ", ".join(f"{shares[round(share * (len(shares) - 1))]:.2f}×" for share in (0.1, 0.5, 0.9))
            in_duckdb = row.details.get("duckdb_seconds", {}).get(way)
            seconds = f"{row.details['seconds'][way]:.1f} s", "" if in_duckdb is None else f"{in_duckdb:.2f} s"
            advised_against = "yes" if way in OF_OURS and row.details.get("advised_against") else ""
            rows.append((name, f"{row.details['files'][way]:,}", *seconds, faster, advised_against))
    return rows


def by_condition(section: Section) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return heads and rows: the share that unseen queries read, by kind of condition and learner."""
    rows = [row for row in section.rows if "conditions" in row.params]
    learners = dict.fromkeys(row.learner for row in rows)
    by_kind: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_kind.setdefault(str(row.params["conditions"]), {})[row.learner] = row
    heads = ("conditions, all unseen", *(method(name, {}) for name in learners), "rows that match")
    lines = [
        (
            kind,
            *(shown("rows_read", own[name].unseen) if name in own else "" for name in learners),
            shown("rows_read", next(iter(own.values())).matching),
        )
        for kind, own in by_kind.items()
    ]
    return [(heads, lines)] if lines else []


def resources(section: Section) -> list[tuple[str, ...]]:
    """Return seconds and peak memory of each step and of Spark alone, in suites that measure both."""
    names = "seconds", "plain_seconds", "python_mb", "worker_mb", "jvm_mb", "plain_jvm_mb"
    return [
        (row.name, row.size, *(f"{row.details[name]:,}" for name in names))
        for row in section.rows
        if all(name in row.details for name in names)
    ]


def figure_name(section: Section) -> str:
    """Return the name of a suite's figure."""
    return section.about.figure_name or FIGURES[section.about.figure]


def about(section: Section) -> str:
    took = f", and took {section.seconds:,.0f} s a seed" if section.seconds else ""
    return f"{section.about.title}. These are lines of the {section.form} form{took}. {full_form(section.suite)}"


def full_form(name: str) -> str:
    suite = EVERY[name]
    command = " ".join(filter(None, (f"python -m bench {name.removesuffix(PHYSICAL)}", suite.options)))
    return f"The full form: `{command}`, by estimate {suite.minutes:g} min a seed on two cores."


def missing(contents: Page) -> list[str]:
    return [f"`{name}`: {EVERY[name].title}. {full_form(name)}" for name in contents.missing]


def pair(section: Section, beside: Beside) -> tuple[str, ...]:
    published, figure = beside.theirs, section.about.figure
    ours = "not run" if beside.ours is None else beside.ours.name if published.figure != "bound" else "rows that match"
    place = f"{published.place}; {published.note}" if published.note else published.place
    if published.figure == OF_RANGE:
        place = f"{place}: {FIGURES[OF_RANGE]}"
    return (
        section.suite,
        published.who,
        shown(published.figure or figure, published.value),
        ours,
        shown(published.figure or figure, beside.value),
        place,
    )
