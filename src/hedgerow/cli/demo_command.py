"""The sub-command `demo`: shows what a layout brings, beside other layouts of the same rows."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.app import JsonOption, spark_of
from hedgerow.cli.output import Output
from hedgerow.core.errors import HedgerowError, shortened

if TYPE_CHECKING:
    from hedgerow.demo.race import Run
    from hedgerow.demo.story import DemoResult

_ROWS = 3_000_000
_MUCH, _SLOWER = 3.0, 1.05  # what the last lines count: so many times faster; so many times as slow
_WIDTH = 48  # of the name of a kind of queries


def demo(
    ctx: typer.Context,
    rows: Annotated[int, typer.Option(min=1_000, help="Events to make, or rows to copy of your table.")] = _ROWS,
    your_table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Take a sample of this table instead. It is only read.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Queries on your table: SQL, or a saved .jsonl file.")
    ] = None,
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where the page is written.")] = Path("hedgerow-demo.html"),
    as_json: JsonOption = False,
) -> None:
    """Time twelve queries of a shop on its tables as they came, by ZORDER, by liquid clustering, and by Hedgerow.

    Answers are compared. The tables are made for it, in a temporary folder. Without Delta's jars, two of the four
    layouts are left out.
    """
    if (your_table is None) != (queries is None):
        raise HedgerowError("--your-table and --queries are given together")
    from hedgerow.demo import story

    output, begun = Output(as_json), time.perf_counter()
    with spark_of(ctx) as spark:
        result, shown = story.demo(spark, Output.line, rows, your_table, queries)
    shown.save(html)
    if as_json:
        output.answer({**result.to_dict(), "html": str(html)}, {})
        return
    titles = [("seconds (files opened)", False), *((name, True) for name in result.files), ("times faster", True)]
    kinds = [[shortened(k.kind, _WIDTH), *map(_run, k.runs.values()), f"{k.times_faster:.1f}"] for k in result.kinds]
    files = ["files in all", *(f"{n:,}" for n in result.files.values()), ""]
    output.table(titles, [*kinds, files])
    output.line("note", "times faster than the best of the other layouts; medians, of two queries their sum")
    if len(result.files) > 2:
        output.line("note", "the files that Delta chooses are read as plain Parquet, so its own planning costs nothing")
    output.answer({}, {**_summary(result), "page": f"{html}, after {time.perf_counter() - begun:.0f} s in all"})
    if sys.stdout.isatty():
        typer.launch(str(html))


def _run(run: Run) -> str:
    return f"{run.seconds:.2f} ({run.files:,})"


def _summary(result: DemoResult) -> dict[str, str | None]:
    kinds = result.kinds
    much = sum(kind.times_faster >= _MUCH for kind in kinds)
    slower = [f"{kind.kind}, {1 / kind.times_faster:.2f} times" for kind in kinds if kind.times_faster < 1 / _SLOWER]
    queries = sum(kind.queries for kind in kinds)
    return {
        "equal": f"all {queries} queries gave the same rows over {len(result.files)} layouts of {result.rows:,} rows",
        "Hedgerow": f"at least {_MUCH:.0f} times faster than the best other layout in {much} of {len(kinds)} kinds; "
        f"slower in {'; '.join(slower) or 'none'}",
    }
