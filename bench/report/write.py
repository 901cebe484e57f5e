"""`python -m bench report`: write docs/results.md and docs/results.html from the lines in bench/results.

`--check` writes nothing, and fails if the pages do not agree with the lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from bench.every_suite import EVERY, PHYSICAL
from bench.report.further_tables import further_tables
from bench.report.lines import read
from bench.report.names import method, table_of
from bench.report.page import FIGURES, Beside, Gain, Page, Row, Section, page
from bench.report.plots import Bar, Curve, bars, curves
from bench.report.published_figures import OF_RANGE
from bench.report.shown import shown

ROOT = Path(__file__).parents[2]
LINES, PAGES = ROOT / "bench" / "results", ROOT / "docs"
HEADS = ("", "size", "{figure}", "unseen queries", "rows that match", "blocks", "learning", "seeds", "commit")
OF_OURS = ("unrouted", "routed", "attached", "attached, Delta")
WAYS = (
    *("table", "files", "all queries", "the same files in DuckDB"),
    *("faster than the source: a tenth, half, nine tenths of the queries at most", "`learn` advised against it"),
)
RESOURCES = (
    *("", "size", "seconds", "Spark alone", "MB of the driver's Python", "of a Python worker"),
    *("of the JVM", "of Spark alone's JVM"),
)
GAINS = (
    *("table", "best without learning", "best method as published", "best published layout, our index", "Hedgerow"),
    *("less than the best of these", "rows that match", "commits"),
)
SECONDS = ("table", "as it came", "the fastest of sorted, ZORDER, liquid clustering", "Hedgerow, attached", "commits")
PAPERS = ("suite", "theirs", "", "ours", "", "where")
INTRO = (
    "Made by `python -m bench report` from the lines in `bench/results`; every line holds its commit, its seed and the "
    "versions of its packages. Figures are medians over seeds, in brackets the least and the most. Rows read are "
    "a share of the table, averaged over the queries; the queries learned from come first, then unseen ones. "
    "'As published' is a paper's method as we built it after the paper, and read as in the paper. 'Our index' marks "
    "published layouts that are read with our index."
)
GAINED = (
    "The rows that queries read which no learner saw (where a suite has none, those learned from), of the same rows, "
    "with blocks of the same least size. No layout reads less than the rows that match."
)
PAIRS = "Orange: the best of the others. Green: ours. Red line: the rows that match."
TOOK = "All queries of a suite on written tables that take turns, caches warmed for all alike."
OTHER_DATA = (
    "The papers' data and queries are not public, so ours are others of the same kind, and shares cannot be compared "
    "digit by digit. What is worse comes first."
)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the pages do not agree with the lines"
    )
    parser.add_argument(
        "--lines", type=Path, default=LINES, metavar="FOLDER", help="the folder of *.jsonl files (bench/results)"
    )
    parser.add_argument("--to", type=Path, default=PAGES, metavar="FOLDER", help="the folder of the pages (docs)")
    options = parser.parse_args(arguments)
    contents = page(read(sorted(options.lines.glob("*.jsonl"))))
    pages = {options.to / "results.md": markdown(contents), options.to / "results.html": html(contents)}
    if options.check:
        stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        if stale:
            raise SystemExit(
                f"the lines in bench/results say otherwise: {', '.join(map(str, stale))}; run python -m bench report"
            )
        return
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")


# --- both pages -----------------------------------------------------------------------------------


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
    """Return a row for each table that was written beside peers."""
    rows: list[tuple[str, ...]] = []
    for section in contents.sections:
        for row in section.rows if section.suite.endswith(PHYSICAL) else ():
            took = row.details.get("seconds", {})
            peers = {way: s for way, s in took.items() if way not in (*OF_OURS, "source")}
            if "source" in took and "attached" in took and peers:
                best = min(peers, key=peers.__getitem__)
                shown_seconds = (
                    f"{took['source']:.1f} s",
                    f"{peers[best]:.1f} s ({best})",
                    f"**{took['attached']:.1f} s**",
                )
                table = ", ".join(filter(None, (section.suite.removesuffix(PHYSICAL), table_of(row.params), row.size)))
                rows.append((table, *shown_seconds, ", ".join(row.commits)))
    return rows


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


# --- Markdown -------------------------------------------------------------------------------------


def markdown(contents: Page) -> str:
    parts = ["# Results", INTRO, "The same with pictures: `docs/results.html`."]
    if gains(contents):
        parts += ["## Rows read, beside the best of the same run", GAINED, _table(GAINS, gains(contents))]
    if seconds(contents):
        parts += ["## Seconds, beside the best of the same run", TOOK, _table(SECONDS, seconds(contents))]
    parts += ["## Where a peer of the same run is better", _listed(contents)]
    for section in contents.sections:
        heads = [h.format(figure=figure_name(section)) for h in HEADS]
        rows = [cells(section, row) for row in section.rows]
        parts += [f"## {section.suite}", about(section)]
        parts += [_table(*table) for table in by_condition(section)] or [_table(heads, rows)]
        if ways(section):
            parts.append(_table(WAYS, ways(section)))
        if resources(section):
            parts.append(_table(RESOURCES, resources(section)))
        parts += [_table(*table) for table in further_tables(section)]
    if contents.papers:
        pairs = [_pair(section, beside) for section, beside in contents.papers]
        parts += ["## Beside the papers, on other data", OTHER_DATA, _table(PAPERS, pairs)]
    if contents.missing:
        parts += ["## Not measured yet", "\n".join(f"* {sentence}" for sentence in missing(contents))]
    return "\n\n".join(parts) + "\n"


def _listed(contents: Page) -> str:
    sentences = slower(contents)
    return "\n".join(f"* {sentence}" for sentence in sentences) if sentences else "Nowhere, by the lines held."


def _pair(section: Section, beside: Beside) -> tuple[str, ...]:
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


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    used = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in rows)]
    lines = [[heads[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


# --- HTML -----------------------------------------------------------------------------------------

STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #1c1e21; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
td, th { border-bottom: 1px solid #d8dbe0; padding: .25em .7em; text-align: left; vertical-align: top; }
td:first-child { overflow-wrap: anywhere; }
svg { display: block; max-width: 100%; height: auto; margin: 1em 0; }
code { background: #f2f3f5; padding: 0 .25em; }
"""
LEGEND = (
    "Grey: the papers. Dark green: ours on the queries learned from; light green: on unseen ones. Orange: peers that "
    "ran beside us. Red line: the rows that match, the least anyone can read. Curves: what the best tree so far reads, "
    "and, pale, what new trees do on average, before cells are joined."
)


def html(contents: Page) -> str:
    parts = [f"<h1>Results</h1><p>{_code(INTRO)}</p>"]
    if contents.gains:
        parts += ["<h2>Rows read, beside the best of the same run</h2>", f"<p>{GAINED} {PAIRS}</p>", _glance(contents)]
        parts.append(_html_table(GAINS, gains(contents)))
    if seconds(contents):
        parts += ["<h2>Seconds, beside the best of the same run</h2>", f"<p>{TOOK}</p>"]
        parts.append(_html_table(SECONDS, seconds(contents)))
    sentences = slower(contents)
    parts.append("<h2>Where a peer of the same run is better</h2>")
    parts.append(
        "<ul>" + "".join(f"<li>{_code(s)}</li>" for s in sentences) + "</ul>" if sentences else _listed(contents)
    )
    parts.append(f"<h2>Each suite</h2><p>{LEGEND}</p>")
    for section in contents.sections:
        heads = [h.format(figure=figure_name(section)) for h in HEADS]
        parts.append(f"<h2>{section.suite}</h2><p>{_code(about(section))}</p>")
        if by_condition(section):
            parts += [_html_table(*table) for table in by_condition(section)]
            continue
        parts += pictures(section)
        parts.append(_html_table(heads, [cells(section, row) for row in section.rows]))
        if ways(section):
            parts.append(_html_table(WAYS, ways(section)))
        if resources(section):
            parts.append(_html_table(RESOURCES, resources(section)))
        parts += [_html_table(*table) for table in further_tables(section)]
    if contents.papers:
        parts += ["<h2>Beside the papers, on other data</h2>", f"<p>{OTHER_DATA}</p>"]
        parts.append(_html_table(PAPERS, [_pair(section, beside) for section, beside in contents.papers]))
    if contents.missing:
        parts.append(
            "<h2>Not measured yet</h2><ul>" + "".join(f"<li>{_code(m)}</li>" for m in missing(contents)) + "</ul>"
        )
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Results</title><style>{STYLE}</style>'
    return head + "\n".join(parts) + "</html>\n"


def _glance(contents: Page) -> str:
    """Draw a pair of bars for each table: the best other method, and ours."""
    drawn = []
    for gain in contents.gains:
        best_other = gain.best_other
        table = f"{gain.suite}, {gain.table}"
        drawn.append(Bar(table, best_other.read, shown("rows_read", best_other.read), "peer", gain.ours.matching))
        drawn.append(Bar("Hedgerow", gain.ours.read, shown("rows_read", gain.ours.read), "ours", gain.ours.matching))
    return bars("rows read: the best of the others, and Hedgerow", drawn)


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


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    used = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in rows)]
    head = "".join(f"<th>{escape(heads[i])}</th>" for i in used)
    body = "".join("<tr>" + "".join(f"<td>{_bold(row[i])}</td>" for i in used) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _bold(text: str) -> str:
    """Escape HTML and set text between ** in bold."""
    return "".join(f"<b>{p}</b>" if i % 2 else p for i, p in enumerate(escape(text).split("**")))


def _code(text: str) -> str:
    """Escape HTML and set text between backticks as code."""
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(escape(text, quote=False).split("`")))
