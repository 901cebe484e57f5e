"""The sub-command `demo`: shows the effect of a layout on a table that it makes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.app import JsonOption, spark_of
from hedgerow.cli.output import Output


def demo(
    ctx: typer.Context,
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where the report is written.")] = Path(
        "hedgerow-demo.html"
    ),
    scale: Annotated[float, typer.Option(min=0.01, help="Size of the table: 1 is 6 million rows.")] = 2,
    as_json: JsonOption = False,
) -> None:
    """Make a table of 12 million rows, learn, rewrite it, prove the rows equal, and time queries. Takes minutes.

    If Delta's jars are available, all tables are Delta tables, and one more is a copy rewritten by Delta's ZORDER.
    """
    from hedgerow import demo as story

    output = Output(as_json)
    with spark_of(ctx) as spark:
        result, shown = story.demo(spark, Output.line, scale)
    shown.save(html)
    if as_json:
        output.answer({**result.to_dict(), "html": str(html)}, {})
        return
    titles = [("", False), ("learned queries", True), ("unseen queries", True)]
    read = [f"{100 * rows:.1f} %" for rows in result.rows_read]
    seconds = [[f"seconds, {name}", *(f"{s:.2f}" for s in result.medians(name))] for name in result.seconds]
    faster = [
        [f"times faster than {name}", *(f"{f:.1f}" for f in result.faster(name))]
        for name in result.seconds
        if name != story.BY_HEDGEROW
    ]
    output.table(titles, [["rows read", *read], *seconds, *faster])
    timed = sum(map(len, result.seconds[story.BY_HEDGEROW]))
    output.line("note", f"medians; all {timed} queries that were timed gave the same rows each time")
    output.answer({}, {"report": str(html)})
    if sys.stdout.isatty():
        typer.launch(str(html))
