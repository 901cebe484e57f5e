"""Charts as SVG, without scripts in the page; colours come from the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from hedgerow.picture.facts import CurvePoint, QueryReads, Week, evenly_spaced
from hedgerow.picture.file_map import FileMap

WIDTH, HEIGHT, LEFT, BELOW = 720, 220, 44, 26
_MOST_BARS, _MOST_ROWS = 300, 120
MOST_NAMES = 8  # colours of a stacked chart; the style has as many
_ROW = 6
MAP_HEIGHT, _MOST_BOXES, _SHORT = 360, 500, 7


def sorted_bars(queries: Sequence[QueryReads]) -> str:
    """Return a bar chart of the rows that each query reads, with the matching rows in front; the worst query first."""
    order = evenly_spaced(sorted(queries, key=lambda q: -q.rows_read), _MOST_BARS)
    step = (WIDTH - LEFT) / max(1, len(order))
    bars = []
    for i, query in enumerate(order):
        x, width = LEFT + i * step, max(0.5, step * 0.85)
        bars.append(f"<g><title>{escape(_description(query))}</title>{_bar(x, width, query.rows_read, 'read')}")
        bars.append(f"{_bar(x, width, query.matching or 0, 'match')}</g>")
    return _svg("Rows that each query reads, sorted", _scale() + "".join(bars) + _below("queries, the worst first"))


def cumulated(queries: Sequence[QueryReads]) -> str:
    """Return a chart of the share of queries that read at most a share of rows."""
    lines = _steps([q.rows_read for q in queries], "read")
    matching = [q.matching for q in queries if q.matching is not None]
    lines += _steps(matching, "match") if matching else ""
    marks = "".join(
        f'<text x="{LEFT + (WIDTH - LEFT - 30) * share:.0f}" y="{HEIGHT - 10}" class="axis">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return _svg("Share of queries that read at most a share of rows", _scale() + lines + marks)


def opened_map(queries: Sequence[QueryReads], files: int) -> str:
    """Return a map with a line for each query and a column for each file, filled where the query opens the file."""
    order = evenly_spaced(sorted(queries, key=lambda q: -len(q.opened)), _MOST_ROWS)
    step = (WIDTH - LEFT) / max(1, files)
    lines = []
    for i, query in enumerate(order):
        y = i * _ROW
        runs = "".join(
            f"M{LEFT + a * step:.1f} {y}h{(b - a) * step:.1f}v{_ROW - 1}h{(a - b) * step:.1f}z"
            for a, b in _runs(query.opened)
        )
        background = f'<path class="back" d="M{LEFT} {y}H{WIDTH}v{_ROW - 1}H{LEFT}z"/>'
        lines.append(f"<g><title>{escape(_description(query))}</title>{background}")
        lines.append(f'<path class="read" d="{runs}"/></g>')
    return _svg("Files that each query opens", "".join(lines), max(_ROW, len(order) * _ROW))


def boxes(shown: FileMap) -> str:
    """Return a map of files in the plane of two columns."""
    drawn = []
    for box in evenly_spaced(shown.boxes, _MOST_BOXES):
        (left, right), (low, high) = box.across, box.up
        x, width = LEFT + (WIDTH - LEFT) * left, max(2.0, (WIDTH - LEFT) * (right - left))
        top, height = _up(high), max(2.0, _up(low) - _up(high))
        ends = f'x="{min(x, WIDTH - 2):.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}"'
        drawn.append(f'<g><title>{escape(box.name)}</title><rect class="box" {ends}/></g>')
    names = (
        (LEFT, MAP_HEIGHT - 8, "", shown.across.least),
        (WIDTH, MAP_HEIGHT - 8, " right", f"{shown.across.column}: {shown.across.largest}"),
        (LEFT, 12, "", f"{shown.up.column}: {shown.up.largest}"),
        (LEFT - 4, _up(0), " right", shown.up.least if len(shown.up.least) < _SHORT else ""),
    )
    texts = "".join(f'<text x="{x}" y="{y:.0f}" class="axis{kind}">{escape(text)}</text>' for x, y, kind, text in names)
    return _svg(f"Files by {shown.across.column} and {shown.up.column}", "".join(drawn) + texts, MAP_HEIGHT)


def _up(share: float) -> float:
    return 20 + (MAP_HEIGHT - 20 - BELOW) * (1 - share)


def stacked_levels(levels: Sequence[Mapping[str, int]], names: Sequence[str]) -> str:
    """Return a bar for each level of a tree, divided by the name of its cuts; all but these names are one part.

    The scale is the number of cuts on the fullest level."""
    most = max((sum(level.values()) for level in levels), default=1)
    step = (WIDTH - LEFT) / max(1, len(levels))
    bars = []
    for i, level in enumerate(levels):
        counts = [(f"name{place}", name, level.get(name, 0)) for place, name in enumerate(names)]
        counts.append(("others", "others", sum(n for name, n in level.items() if name not in names)))
        below = 0
        for kind, name, n in counts:
            if n:
                top, height = _y((below + n) / most), _y(below / most) - _y((below + n) / most)
                title = f"<title>level {i + 1}: {n:,} of {escape(name)}</title>"
                box = f'x="{LEFT + i * step:.1f}" y="{top:.1f}" width="{step * 0.85:.1f}" height="{height:.1f}"'
                bars.append(f'<g>{title}<rect class="{kind}" {box}/></g>')
            below += n
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{_y(share) + 4:.1f}" class="axis right">{round(share * most):,}</text>'
        for share in (0, 0.5, 1)
    )
    return _svg("Cuts on each level of the tree", marks + "".join(bars) + _below("levels of the tree, the root first"))


def curve(points: Sequence[CurvePoint]) -> str:
    """Return a chart of the shares of rows read, a step to the right for each point; the numbers of levels below."""
    step = (WIDTH - LEFT - 30) / max(1, len(points) - 1)
    drawn = ""
    for kind in ("read", "unseen"):
        shares = [getattr(point, kind) for point in points]
        if None not in shares:
            path = " ".join(f"{LEFT + i * step:.1f} {_y(share):.1f}" for i, share in enumerate(shares))
            drawn += f'<path class="line {kind}" d="M{path}"/>'
    marks = "".join(
        f'<text x="{LEFT + i * step:.0f}" y="{HEIGHT - 8}" class="axis">{point.levels}</text>'
        for i, point in enumerate(points)
    )
    return _svg("Share of rows read as the tree grows, by its levels", _scale() + drawn + marks)


def weekly(weeks: Sequence[Week]) -> str:
    """Return a bar for each week: the seconds of its queries, and on them those of the autopilot."""
    most = max((week.seconds + week.autopilot_seconds for week in weeks), default=0.0) or 1.0
    step = (WIDTH - LEFT) / max(1, len(weeks))
    bars = []
    for i, week in enumerate(weeks):
        parts = (("read", week.seconds, "queries"), ("match", week.autopilot_seconds, "the autopilot"))
        below = 0.0
        for kind, seconds, name in parts:
            top, height = _y((below + seconds) / most), _y(below / most) - _y((below + seconds) / most)
            title = f"<title>week from {week.monday}: {seconds:,.0f} s of {name}</title>"
            box = f'x="{LEFT + i * step:.1f}" y="{top:.1f}" width="{step * 0.85:.1f}" height="{height:.1f}"'
            bars.append(f'<g>{title}<rect class="{kind}" {box}/></g>')
            below += seconds
    marks = "".join(
        f'<text x="{LEFT - 6}" y="{_y(share) + 4:.1f}" class="axis right">{duration(share * most)}</text>'
        for share in (0, 0.5, 1)
    )
    ends = f"weeks from {weeks[0].monday} to {weeks[-1].monday}" if weeks else ""
    return _svg("Seconds of queries and of the autopilot in each week", marks + "".join(bars) + _below(ends))


def share_bar(share: float) -> str:
    return f'<span class="bar" style="--share:{100 * min(1, share):.1f}%" aria-hidden="true"></span>'


def percent(share: float | None) -> str:
    """Return the share as a percentage; the empty text for None.

    >>> percent(0.0312), percent(0.5), percent(0.00003), percent(None)
    ('3.1 %', '50 %', '< 0.1 %', '')
    """
    if share is None:
        return ""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def duration(seconds: float) -> str:
    """Return a time in its unit.

    >>> duration(0), duration(0.034), duration(9.5), duration(90), duration(600), duration(9000)
    ('0 s', '0.03 s', '9.5 s', '90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        digits = 2 if 0 < seconds < 1 else 1 if 1 <= seconds < 10 else 0
        return f"{seconds:.{digits}f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _description(query: QueryReads) -> str:
    matching = "" if query.matching is None else f", {percent(query.matching)} match"
    return f"{query.text}: reads {percent(query.rows_read)} in {place_of(query)}{matching}"


def place_of(query: QueryReads) -> str:
    """Return the place where a query reads its rows."""
    return f"{len(query.opened):,} files" if query.replica is None else f"the replica {query.replica}"


def _y(share: float) -> float:
    return (HEIGHT - BELOW) * (1 - min(1.0, share)) + 4


def _bar(x: float, width: float, share: float, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{_y(share):.1f}" width="{width:.1f}" height="{_y(0) - _y(share):.1f}"/>'
    )


def _steps(shares: Sequence[float], kind: str) -> str:
    ordered, width = sorted(shares), WIDTH - LEFT - 30
    path = f"M{LEFT} {_y(0):.1f}"
    for i, share in enumerate(ordered):
        path += f"H{LEFT + width * min(1.0, share):.1f}V{_y((i + 1) / len(ordered)):.1f}"
    return f'<path class="line {kind}" d="{path}H{LEFT + width}"/>'


def _runs(opened: frozenset[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive numbers as (start, end).

    >>> _runs(frozenset({1, 2, 3, 7}))
    [(1, 4), (7, 8)]
    """
    runs: list[tuple[int, int]] = []
    for i in sorted(opened):
        if runs and runs[-1][1] == i:
            runs[-1] = runs[-1][0], i + 1
        else:
            runs.append((i, i + 1))
    return runs


def _scale() -> str:
    shares = (0, 0.25, 0.5, 0.75, 1)
    return "".join(
        f'<path class="grid" d="M{LEFT} {_y(s):.1f}H{WIDTH}"/><text x="{LEFT - 6}" y="{_y(s) + 4:.1f}" '
        f'class="axis right">{s:.0%}</text>'
        for s in shares
    )


def _below(text: str) -> str:
    return f'<text x="{LEFT}" y="{HEIGHT - 8}" class="axis">{text}</text>'


def _svg(label: str, inside: str, height: float = HEIGHT) -> str:
    return f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {WIDTH} {height:g}">{inside}</svg>'
