"""The parts of the page about time: before and after, the learning curve, and the weeks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hedgerow.core.byte_text import byte_text
from hedgerow.core.html import html_table
from hedgerow.picture.charts import curve, duration, percent, weekly
from hedgerow.picture.facts import PRICED_QUERIES, Change, CurvePoint, Kind, Picture, Week

_UNKNOWN = "–"
_BEFORE_AFTER = f"""<p>What a query took before the table had its first layout → what it takes now, as means.
{_UNKNOWN} stands for what is not known. <b>Measured</b> seconds are those of queries with such a condition and such
columns, in the logs of both times. <b>Estimated</b> seconds are those of two cores at the usual speed of a disk or an
object store, by the files that Spark opens and the bytes that it reads there. Bytes are those of the query's columns in
these files.</p>"""
_GONE = "<p>What these queries took before is not known: no log has them, and the table from before is gone.</p>"
_CURVE = """<p>The share of rows that a query reads if only the first levels of the tree divide the table, by their
number; estimated on a sample. Queries on a column with a filter for look-ups are left out: they need no tree."""
_WEEKS = """<p>The seconds of the queries in the table's log, and those of the autopilot's searches and rewrites; all
are measured. Its looks that end before a search are not counted."""


def before_after(picture: Picture, kinds: Sequence[Kind]) -> str:
    """Return a table with the seconds and bytes of each kind of query, before the first layout and now."""
    prices, known = picture.prices, [query for query in picture.queries if query.is_compared]
    shown = [("all that are known", Kind(tuple(known)))] if known and len(kinds) > 1 else []
    shown += [(kind.text, kind) for kind in kinds]
    rows = []
    for text, kind in shown:
        seconds, size = kind.seconds, kind.bytes
        price = _change(prices.of(seconds, size), "{:,.2f}".format)
        rows.append((text, f"{len(kind.queries):,}", _change(seconds, duration), _change(size, byte_text), price))
    if all(text == _UNKNOWN for row in rows for text in row[2:]):
        return _GONE
    titles = ("such as", "queries", "seconds", "bytes", f"price of {PRICED_QUERIES:,}")
    columns = len(titles) - (not prices.are_given)
    return _BEFORE_AFTER + html_table([row[:columns] for row in rows], titles[:columns])


def _change(change: Change, text: Callable[[float], str]) -> str:
    ends = [_UNKNOWN if end is None else text(end) for end in (change.before, change.now)]
    return _UNKNOWN if ends == [_UNKNOWN, _UNKNOWN] else f"{' → '.join(ends)} {change.known}"


def learning_curve(points: Sequence[CurvePoint]) -> str:
    """Return a chart of the points, and the same as a table."""
    keys = [("read", "these queries")]
    if points and points[0].unseen is not None:
        keys.append(("unseen", "such queries with other literals"))
    rows = [(p.levels, f"{p.blocks:,}", percent(p.read), percent(p.unseen)) for p in points]
    titles = ("levels", "blocks", *(label for _, label in keys))
    table = html_table([row[: len(titles)] for row in rows], titles)
    return f"{_CURVE}{_key(keys)}</p>{curve(points)}<details><summary>The same as a table</summary>{table}</details>"


def past_weeks(weeks: Sequence[Week], price: float | None) -> str:
    """Return a chart and a table of the weeks, the last one first; `price`: of an hour of the cluster."""
    titles = ("week from", "queries", "took", "one took", "the autopilot did", "its searches", "its rewrites")
    costs = () if price is None else ("price of the queries", "of the autopilot")
    rows = [_week(week, price) for week in reversed(weeks)]
    key = _key((("read", "queries"), ("match", "the autopilot")))
    return f"{_WEEKS}{key}</p>{weekly(weeks)}{html_table(rows, titles + costs)}"


def _week(week: Week, price: float | None) -> list[str]:
    is_whole = week.timed == week.queries
    took = duration(week.seconds) + ("" if is_whole else f" by {week.timed:,} of them")
    mean = duration(week.seconds / week.timed) if week.timed else _UNKNOWN
    own = [duration(seconds) if seconds else "" for seconds in (week.search_seconds, week.rewrite_seconds)]
    row = [week.monday, f"{week.queries:,}", took if week.timed else _UNKNOWN, mean, ", ".join(week.actions), *own]
    if price is not None:
        costs = [f"{seconds / 3600 * price:,.2f}" for seconds in (week.seconds, week.autopilot_seconds)]
        row += [costs[0] if is_whole else _UNKNOWN, costs[1]]
    return row


def _key(kinds: Sequence[tuple[str, str]]) -> str:
    return "".join(f'<span class="known"><span class="key {kind}"></span>{label}</span>' for kind, label in kinds)
