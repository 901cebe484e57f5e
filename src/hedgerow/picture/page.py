"""The picture of a table as a page of HTML without scripts or other files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from hedgerow.core.html import html_table
from hedgerow.picture.charts import (
    MOST_NAMES,
    boxes,
    cumulated,
    opened_map,
    percent,
    place_of,
    share_bar,
    sorted_bars,
    stacked_levels,
)
from hedgerow.picture.cuts_by_level import totals
from hedgerow.picture.facts import Askers, Branch, Kind, Picture
from hedgerow.picture.file_map import FileMap
from hedgerow.picture.over_time import before_after, learning_curve, past_weeks

_MOST_QUERIES, _MOST_KINDS, _MOST_ASKERS, _MOST_OF_CUT = 200, 50, 12, 4
_OPEN_LEVELS, _MOST_LEVELS = 3, 60


def page(picture: Picture) -> str:
    """Return the whole page."""
    sections = [
        f"<h1>{escape(picture.title)}</h1>",
        _numbers(picture),
        *_of_queries(picture),
        *_section("Where a value may be", _narrow(picture), bool(picture.narrow)),
        *_section("Where the files lie", _maps(picture.maps), bool(picture.maps)),
        *_section("The tree", _tree(picture), picture.tree is not None),
        *_section("The learning curve", learning_curve(picture.curve), bool(picture.curve)),
        *_section("The weeks", past_weeks(picture.weeks, picture.prices.hour), bool(picture.weeks)),
        *_section(
            "Decisions of the autopilot",
            html_table(picture.decisions, ("when", "what", "why")),
            bool(picture.decisions),
        ),
        *_section("The table", html_table(picture.facts), True),
    ]
    style = files("hedgerow.picture").joinpath("style.css").read_text("utf-8")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escape(picture.title)}</title><style>{style}</style>"
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main>{"".join(sections)}</main></body></html>\n'


def _numbers(picture: Picture) -> str:
    rows, files = sum(f.rows for f in picture.files), len(picture.files)
    numbers = [(f"{rows:,}", "rows"), (f"{files:,}", "files")]
    every = picture.all_queries
    if every is not None:
        numbers.append((f"{every.files:,.1f}", "files opened by a query"))
        numbers.append((percent(every.rows_read), "of the rows read by a query"))
        if every.matching is not None:
            numbers.append((percent(every.matching), "match: no layout reads less"))
    return (
        f'<div class="big">{"".join(f"<div><strong>{number}</strong>{label}</div>" for number, label in numbers)}</div>'
    )


def _of_queries(picture: Picture) -> Iterable[str]:
    if not picture.queries:
        yield '<p class="note">There are no queries to show: none were given, and the log has none.</p>'
        return
    yield from _section("Kinds of queries", _kinds(picture.kinds), True)
    yield from _section("Before and after", before_after(picture, picture.kinds[:_MOST_KINDS]), True)
    keys = (("read", "rows read"), ("match", "rows that match"))
    key = "".join(f'<span class="known"><span class="key {kind}"></span>{label}</span>' for kind, label in keys)
    yield f"<h2>Rows read by each query</h2><p>Without the index every query opens every file: 100 %.{key}</p>"
    yield _wide("rows read by each query", sorted_bars(picture.queries))
    yield from _section("Share of queries by rows read", cumulated(picture.queries), True)
    yield "<h2>Queries and the files that they open</h2>"
    yield "<p>A line for each query, a column for each file in the order of blocks.</p>"
    yield _wide("files that each query opens", opened_map(picture.queries, len(picture.files)))
    order = sorted(picture.queries, key=lambda q: -q.rows_read)
    more = (
        f'<p class="note">The {_MOST_QUERIES} that read most, of {len(order):,}.</p>'
        if len(order) > _MOST_QUERIES
        else ""
    )
    rows = ((q.text, percent(q.rows_read), percent(q.matching), place_of(q), q.means) for q in order[:_MOST_QUERIES])
    listed = html_table(rows, ("query", "reads", "match", "in", "by"))
    yield f"<details><summary>The same as a table</summary>{more}{_wide('queries', listed)}</details>"


def _kinds(kinds: Sequence[Kind]) -> str:
    note = "<p>Queries of one kind differ in their literals only. Without the index each of them opens every file.</p>"
    if len(kinds) > _MOST_KINDS:
        note += f'<p class="note">The {_MOST_KINDS} kinds with the most queries, of {len(kinds):,}.</p>'
    rows = [
        (
            kind.text,
            f"{len(kind.queries):,}",
            f"{kind.files:,.1f}",
            percent(kind.rows_read),
            percent(kind.matching),
            ", ".join(kind.means),
            kind.why_not_fewer,
        )
        for kind in kinds[:_MOST_KINDS]
    ]
    titles = ["such as", "queries", "files opened", "rows read", "match", "by", "why not fewer"]
    used = [i for i in range(len(titles)) if any(row[i] for row in rows)]
    return note + html_table([[row[i] for i in used] for row in rows], [titles[i] for i in used])


def _section(title: str, inside: str, is_shown: bool) -> Iterable[str]:
    if is_shown:
        yield f"<h2>{title}</h2>{_wide(title, inside)}"


def _wide(title: str, inside: str) -> str:
    """Return a part of the page that is scrolled by itself where the screen is narrow, with the keyboard too."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{title}">{inside}</div>'


def _narrow(picture: Picture) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(column)}</code></td><td>{share_bar(share)}</td><td>{percent(share)}</td></tr>"
        for column, share in picture.narrow
    )
    note = "<p>The share of rows in files that may hold a given value of the column, as a mean over the values.</p>"
    return f"{note}<table><tbody>{rows}</tbody></table>"


def _maps(maps: Sequence[FileMap]) -> str:
    """Return the maps, of which one is open at a time."""
    note = "<p>A box for each file, from its least to its largest value of two columns. All ends are evenly spaced.</p>"
    drawn = [
        f'<details name="map"{" open" if i == 0 else ""}><summary>{escape(own.across.column)} and '
        f"{escape(own.up.column)}</summary>{boxes(own)}</details>"
        for i, own in enumerate(maps)
    ]
    return note + "".join(drawn)


def _tree(picture: Picture) -> str:
    if picture.tree is None:
        return ""
    note = (
        "<p>Each cut has the rows of the blocks below it, and the number of queries that open a file there. Inside are "
        "some that open files on one side of it, or on both. A block may be below several cuts; it has a query of each "
        "kind that opens it.</p>"
    )
    return f"{note}{_branch(picture.tree, 0)}<h2>Cuts on each column, by level</h2>{_levels(picture.levels)}"


def _levels(levels: Sequence[Mapping[str, int]]) -> str:
    """Return a chart of the cuts of each level, its key with the number of all cuts of a name, and the same as a table.

    Names beyond `MOST_NAMES` share a colour."""
    names = totals(levels)
    shown, others = list(names)[:MOST_NAMES], list(names)[MOST_NAMES:]
    key = "".join(
        f'<span class="known"><span class="key name{i}"></span><code>{escape(name)}</code> ({names[name]:,})</span> '
        for i, name in enumerate(shown)
    )
    if others:
        count = sum(names[name] for name in others)
        key += f'<span class="known"><span class="key others"></span>{len(others):,} others ({count:,})</span>'
    rows = [[i + 1, *(level.get(name, "") for name in names)] for i, level in enumerate(levels)]
    table = f"<details><summary>The same as a table</summary>{html_table(rows, ('level', *names))}</details>"
    note = "<p>A condition that compares more than one column with values is a cut of its own.</p>"
    return f"{note}{stacked_levels(levels, shown)}<p>{key}</p>{table}"


def _branch(branch: Branch, level: int, side: str = "") -> str:
    count = f'<span class="count">{branch.rows:,} rows, {branch.askers.queries:,} queries</span>'
    text = f"{side and f'<span class=side>{side}</span> '}{escape(branch.text)}"
    if branch.yes is None or branch.no is None:
        if not branch.askers.kinds:
            return f'<div class="leaf">{text} {count}</div>'
        return f"<details><summary>{text} {count}</summary>{_listed(branch.askers, _MOST_ASKERS)}</details>"
    if level == _MOST_LEVELS:
        return f'<div class="leaf">{text} and more below {count}</div>'
    inside = _passing(branch) + _branch(branch.yes, level + 1, "yes") + _branch(branch.no, level + 1, "no")
    is_open = " open" if level < _OPEN_LEVELS else ""
    return f"<details{is_open}><summary>{text} {count}</summary>{inside}</details>"


def _passing(branch: Branch) -> str:
    """Return the queries that open files on each side of a cut, and on both: their numbers, and some of each kind."""
    if not branch.askers.queries:
        return ""
    sides = (("on yes only", branch.yes_only), ("on no only", branch.no_only), ("on both", branch.both))
    counts = ", ".join(f"{side.queries:,} {name}" for name, side in sides)
    lists = "".join(f"<p>{name}</p>{_listed(side, _MOST_OF_CUT)}" for name, side in sides if side.kinds)
    return f'<details class="passing"><summary>queries: {counts}</summary>{lists}</details>'


def _listed(askers: Askers, most: int) -> str:
    listed, more = "".join(f"<li>{escape(kind)}</li>" for kind in askers.kinds[:most]), len(askers.kinds) - most
    return f"<ul>{listed}{f'<li>and {more:,} more kinds</li>' if more > 0 else ''}</ul>"
