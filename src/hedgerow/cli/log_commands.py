"""The sub-commands about the log of a table's queries, and `calibrate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hedgerow
from hedgerow.cli.app import JsonOption, SourceArgument, is_log, spark_of
from hedgerow.cli.output import Output, share
from hedgerow.core.errors import first_few

if TYPE_CHECKING:
    from hedgerow.pipeline.log import LogReport


def log(
    ctx: typer.Context,
    source: SourceArgument,
    since: Annotated[str | None, typer.Option(help="Only queries from this time on, such as 2026-11-01.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what the logged queries of SOURCE filter on, and how many of the scanned rows they keep.

    hedgerow.log writes the log in the session that runs the queries; import-log brings past ones into it.
    """
    from hedgerow.pipeline.log import report

    with spark_of(ctx) as spark:
        summary = report(spark, source, since)
    Output(as_json).answer(asdict(summary), _shown(summary))


def import_log(
    ctx: typer.Context,
    source: SourceArgument,
    queries: Annotated[Path, typer.Argument(metavar="QUERIES", help="Event logs of Spark, or .sql or .jsonl.")],
    table: Annotated[str | None, typer.Option(help="The name that SQL texts have for SOURCE.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring past queries of SOURCE into its log.

    A .sql file has a line `-- at 2026-11-01 12:00:00` before each statement; a line of .jsonl is {"at":..., "sql":...}.
    """
    with spark_of(ctx) as spark:
        imported = hedgerow.import_log(spark, source, queries, table)
    output = Output(as_json)
    for remark in first_few(imported.skipped, "--json lists all"):
        output.line("note", remark)
    output.answer(
        {"imported": imported.entries, "skipped": list(imported.skipped)}, {"imported": f"{imported.entries:,} queries"}
    )


def calibrate(
    ctx: typer.Context,
    source: SourceArgument,
    workload: Annotated[Path, typer.Argument(help="A file of queries; by default the table's log.")] = Path("log"),
    price: Annotated[float | None, typer.Option(help="What an hour of the cluster costs.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Time a few small rewrites of parts of SOURCE; from then on `auto` estimates by them, and by its own rewrites.

    The parts are written to a folder inside of the table's own, which is deleted.
    """
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    with spark_of(ctx) as spark:
        cost = hedgerow.calibrate(spark, source, queries)
    few, many = (cost.seconds(1 << 30, items) for items in (10, 100))
    Output(as_json).answer(
        asdict(cost),
        {
            "a rewrite takes": str(cost),
            "1 GB": f"{few:,.0f} s with ten conditions in the index, {many:,.0f} s with a hundred",
            "1 GB costs": None if price is None else f"{few * price / 3600:,.2f} to {many * price / 3600:,.2f}",
        },
    )


def _shown(report: LogReport) -> dict[str, str | None]:
    workload = report.workload
    points = [f"{name} {count:,}" for name, count in list(workload.points.items())[:4]]
    return {
        "queries": f"{workload.queries:,.0f}, {workload.conditions:,} different conditions",
        "logged": f"{report.first} to {report.last}",
        "filtered": f"{share(workload.filtered).strip()} of the queries",
        "by columns": f"{share(workload.simple).strip()}, comparing columns with literals only",
        "otherwise": f"{share(workload.complex).strip()}, with other conditions too",
        "partitions": f"{share(workload.on_partitions).strip()} filter on {', '.join(report.partitions)}"
        if report.partitions
        else None,
        "often on": _listed(workload.frequent),
        "literals": ", ".join(points) or None,
        "kinds": _listed(report.kinds),
        "kept": f"{share(report.kept).strip()} of {report.rows:,} scanned rows" if report.rows else None,
        "could skip": f"{share(report.filter_most).strip()} of the queries drop three quarters of what they scan, "
        f"{share(report.filter_nearly_all).strip()} nine tenths"
        if report.rows
        else None,
        "files": f"{report.files:,} opened, {report.mean_file_bytes / (1 << 20):,.1f} MB on average"
        if report.files
        else None,
        "skipped": f"of the files, by {_listed(report.skipped)}" if report.skipped else None,
        "seconds": f"{report.seconds:,.1f} in all" if report.seconds else None,
    }


def _listed(shares: Mapping[str, float]) -> str | None:
    """
    >>> _listed({"where": 0.75, "top-k": 0.25})
    'where 75.00 %, top-k 25.00 %'
    """
    return ", ".join(f"{name} {share(part).strip()}" for name, part in shares.items()) or None
