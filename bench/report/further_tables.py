"""Tables of the page of results that few suites have, as heads and rows of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from bench.report.page import Row, Section
from bench.report.published_figures import OF_WORKLOADS, SKIPPED_VOLUME
from bench.report.shown import shown

Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]]]


def templates(section: Section) -> list[Table]:
    """Return heads and rows for each table: the median milliseconds of every template's queries, by way."""
    tables = []
    for row in section.rows:
        took = row.details.get("template_ms", {})
        if len(took) > 1:
            heads = ("template, ms", *next(iter(took.values())))
            tables.append((heads, [(name, *(f"{ms:,}" for ms in of.values())) for name, of in took.items()]))
    return tables


def by_day(section: Section) -> list[Table]:
    """Return heads and rows of histories: the seconds of each part, and of each day's queries."""
    rows = [row for row in section.rows if "scan_seconds_by_day" in row.details]
    if not rows:
        return []
    parts, days = rows[0].details["seconds"], rows[0].details["scan_seconds_by_day"]
    spent = [
        (
            row.name,
            *(f"{row.details['seconds'][part]:,.0f}" for part in parts),
            f"{row.details['bytes_read'] / 1e12:.2f}",
        )
        for row in rows
    ]
    scanned = [(row.name, *(f"{seconds:,.0f}" for seconds in row.details["scan_seconds_by_day"])) for row in rows]
    by_number = tuple(f"day {number}" for number in range(1, len(days) + 1))
    return [(("seconds", *parts, "TB read"), spent), (("seconds of queries", *by_number), scanned)]


def estimated(section: Section) -> list[Table]:
    """Return heads and rows of estimated seconds beside measured ones."""
    heads = ("estimated / measured seconds", "the rewrite", "a query before", "a query after")
    rows = []
    for row in section.rows:
        if "query_estimated" in row.details:
            rewrite = row.details["estimated_seconds"], row.details["seconds"]
            queries = zip(row.details["query_estimated"], row.details["query_seconds"], strict=True)
            rows.append((row.name, *(f"{estimate:.2f} / {real:.2f}" for estimate, real in (rewrite, *queries))))
    return [(heads, rows)] if rows else []


def by_features(section: Section) -> list[Table]:
    """Return heads and rows of rewrites with several features: how far estimates are off, and what a feature takes."""
    cells = [(_features(row), row) for row in section.rows if "skipped" in row.details]
    tables = []
    # Only one table has several columns and row groups at once.
    grid = next((row.size for (zorder, sop, _), row in cells if sop and zorder > 1), None)
    of_grid = {(zorder, sop): row for (zorder, sop, more), row in cells if row.size == grid and not more}
    if of_grid:
        across = sorted({sop for _, sop in of_grid})
        down = sorted({zorder for zorder, _ in of_grid})
        heads = (f"off by a factor of, {grid} (the thesis)", *(f"{sop} conditions in groups" for sop in across))
        tables.append((heads, [(f"{z} columns", *(_off(of_grid, z, sop) for sop in across)) for z in down]))
    for row in section.rows:
        each = row.details.get("seconds_per_gb")
        if each:
            errors = f"{100 * (row.value or 0):.0f} %", f"{100 * row.details['error_by_bytes_alone']:.0f} %"
            heads = ("seconds of a rewrite", *each, "mean error", "by bytes alone")
            names = "once, then for each GB"
            tables.append((heads, [(names, *(f"{seconds:.1f}" for seconds in each.values()), *errors)]))
    return tables


def _features(row: Row) -> tuple[int, int, int]:
    """Return the numbers of columns in the Z-order, of conditions in groups, and of more conditions in the index."""
    zorder, sop, more = (int(str(row.params[name])) for name in ("zorder", "sop", "more"))
    return zorder, sop, more


def _off(rows: Mapping[tuple[int, int], Row], zorder: int, sop: int) -> str:
    """Return by which factor the estimated and the measured skipped volume differ, beside the thesis'."""
    row, theirs = rows.get((zorder, sop)), SKIPPED_VOLUME.get((zorder, sop))
    published = "" if theirs is None else f" ({theirs:.2f})"
    return "" if row is None or not row.value else f"{max(row.value, 1 / row.value):.2f}{published}"


def of_workloads(section: Section) -> list[Table]:
    """Return heads and rows of the queries of all tables beside those of the thesis' customers."""
    heads = ("share of", "the thesis, chapter 2", "ours")
    return [
        (heads, [(name, OF_WORKLOADS.get(name, ""), f"{100 * share:.0f} %") for name, share in shares.items()])
        for row in section.rows
        if (shares := row.details.get("shares"))
    ]


def by_way(section: Section) -> list[Table]:
    """Return heads and rows of each way: the seconds of all queries, and the rows and bytes of the fact tables."""
    heads = ("all queries", "seconds", "million rows", "MB of files")
    tables: list[Table] = []
    for row in section.rows:
        if "million_rows" in row.details:
            figures = [row.details[name] for name in ("seconds", "million_rows", "megabytes")]
            tables.append((heads, [(way, *(f"{of[way]:,.0f}" for of in figures)) for way in figures[0]]))
    return tables


def by_append(section: Section) -> list[Table]:
    """Return heads and rows of the shares that queries read after each append."""
    rows = [row for row in section.rows if "after_each_append" in row.details]
    if not rows:
        return []
    appends = range(1, len(rows[0].details["after_each_append"]) + 1)
    heads = ("rows read after append", *map(str, appends), "rows written")
    shares = [[shown("rows_read", share) for share in row.details["after_each_append"]] for row in rows]
    written = [f"{row.details['rows_written']:,}" for row in rows]
    return [(heads, [(row.name, *own, n) for row, own, n in zip(rows, shares, written, strict=True)])]


def of_late_keys(section: Section) -> list[Table]:
    """Return heads and rows of what keys of joins add to planning and running where they bring nothing."""
    heads = ("milliseconds", "planning", "more with keys, between", "running", "more with keys, between")
    rows = []
    for row in section.rows:
        if "plan_ms_more" in row.details:
            cells = []
            for part in ("plan", "run"):
                median, least, most = row.details[f"{part}_ms_more"]
                cells += [f"{row.details[f'{part}_ms']:.1f}", f"{median:.1f} [{least:.1f}, {most:.1f}]"]
            rows.append((row.name, *cells))
    return [(heads, rows)] if rows else []


def further_tables(section: Section) -> list[Table]:
    """Return heads and rows of the tables that few suites have."""
    few = templates, by_way, by_day, estimated, by_features, of_workloads, by_append, of_late_keys
    return [table for tables in few for table in tables(section)]
