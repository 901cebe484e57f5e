"""The pages of results as Markdown, and the pictures that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.report import rows
from bench.report.further_tables import further_tables
from bench.report.opening import picture, sentences
from bench.report.page import Page, Section
from bench.report.pictures import pictures, theirs_and_ours
from bench.report.plots import title_of
from bench.report.topics import TOPICS, Topic

HEADS = ("", "size", "{figure}", "unseen queries", "rows that match", "blocks", "learning", "seeds", "commit")
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
SECONDS = ("table", "as it came", "the best layout without Hedgerow", "Hedgerow, attached", "commits")
PAPERS = ("suite", "theirs", "", "ours", "", "where")
INTRO = (
    "Made by `python -m bench report` from the lines in `bench/results`; every line holds its commit, its seed and the "
    "versions of its packages. Figures are medians over seeds, in brackets the least and the most. Rows read are "
    "a share of the table, averaged over the queries; the queries learned from come first, then unseen ones. "
    "'As published' is a paper's method as we built it after the paper, and read as in the paper. 'Our index' marks "
    "published layouts that are read with our index. A † marks lines whose learner's code has changed since."
)
GAINED = (
    "The rows that queries read which no learner saw (where a suite has none, those learned from), of the same rows, "
    "with blocks of the same least size. No layout reads less than the rows that match."
)
TOOK = "All queries of a suite on written tables that take turns, caches warmed for all alike."
OTHER_DATA = (
    "The paper's data and queries are not public, so ours are others of the same kind, and shares cannot be compared "
    "digit by digit. What is worse comes first."
)
LEGEND = (
    "In the pictures, grey: the paper. Dark green: ours on the queries learned from; light green: on unseen ones. "
    "Orange: peers that ran beside us. Red line: the rows that match, the least anyone can read. Curves: what the best "
    "tree so far reads, and, pale, what new trees do on average, before cells are joined."
)


def pages(contents: Page) -> dict[str, str]:
    """Return each page and each picture by its path in the folder of documents."""
    written = [topic for topic in TOPICS if _sections(contents, topic)]
    drawn = picture(contents)
    files = {"results.md": _first(contents, written, bool(drawn))}
    if drawn:
        files["results/pictures/seconds.svg"] = drawn
    for topic in written:
        files[f"results/{topic.name}.md"] = _topic(contents, topic, files)
    return files


def _first(contents: Page, topics: Sequence[Topic], has_picture: bool) -> str:
    parts = ["# Results", "\n".join(f"* {sentence}" for sentence in sentences(contents))]
    if has_picture:
        parts.append("![Seconds of each layout on three tables](results/pictures/seconds.svg)")
    parts += ["\n".join(f"* [{topic.title}](results/{topic.name}.md): {topic.about}" for topic in topics), INTRO]
    if rows.seconds(contents):
        parts += ["## Seconds, beside the best of the same run", TOOK, _table(SECONDS, rows.seconds(contents))]
    if rows.gains(contents):
        parts += ["## Rows read, beside the best of the same run", GAINED, _table(GAINS, rows.gains(contents))]
    slower = rows.slower(contents) or ["Nowhere, by the lines held."]
    parts += ["## Where a peer of the same run is better", "\n".join(f"* {sentence}" for sentence in slower)]
    if contents.missing:
        parts += ["## Not measured yet", "\n".join(f"* {sentence}" for sentence in rows.missing(contents))]
    return _joined(parts)


def _topic(contents: Page, topic: Topic, files: dict[str, str]) -> str:
    parts = [f"# {topic.title}", topic.about]
    of_paper = [(section, beside) for section, beside in contents.papers if section.suite in topic.suites]
    if of_paper:
        parts += _pictures([theirs_and_ours(topic.title, of_paper)], topic.name, files)
        pairs = [rows.pair(section, beside) for section, beside in of_paper]
        parts += ["## Beside the paper, on other data", OTHER_DATA, _table(PAPERS, pairs)]
    parts.append(LEGEND)
    for section in _sections(contents, topic):
        parts += _section(section, files)
    return _joined(parts)


def _section(section: Section, files: dict[str, str]) -> list[str]:
    heads = [head.format(figure=rows.figure_name(section)) for head in HEADS]
    parts = [f"## {section.suite}", rows.about(section)]
    kinds = rows.by_condition(section)
    if kinds:
        return parts + [_table(*table) for table in kinds]
    parts += _pictures(pictures(section), section.suite, files)
    parts.append(_table(heads, [rows.cells(section, row) for row in section.rows]))
    if rows.ways(section):
        parts.append(_table(WAYS, rows.ways(section)))
    if rows.resources(section):
        parts.append(_table(RESOURCES, rows.resources(section)))
    return parts + [_table(*table) for table in further_tables(section)]


def _pictures(drawn: Sequence[str], name: str, files: dict[str, str]) -> list[str]:
    """Add pictures to the files; return what shows them."""
    shown = []
    for number, svg in enumerate(filter(None, drawn), 1):
        path = f"pictures/{name}-{number}.svg"
        files[f"results/{path}"] = svg
        shown.append(f"![{title_of(svg)}]({path})")
    return shown


def _sections(contents: Page, topic: Topic) -> list[Section]:
    by_suite: Mapping[str, Section] = {section.suite: section for section in contents.sections}
    return [by_suite[suite] for suite in topic.suites if suite in by_suite]


def _table(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    used = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in cells)]
    lines = [[heads[i] for i in used], ["---"] * len(used), *([row[i] for i in used] for row in cells)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"
