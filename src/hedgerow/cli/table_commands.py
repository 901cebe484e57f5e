"""The sub-commands about a managed table: its facts, checks, repairs and history."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import hedgerow
from hedgerow.cli.app import DirectoryArgument, JsonOption, WorkloadArgument, is_log, spark_of
from hedgerow.cli.jar_command import show_conf
from hedgerow.cli.output import Output, all_or, share, summary
from hedgerow.core.errors import HedgerowError

_HISTORY = ("version", "operation", "batch", "wave", "waves", "time", "rows", "learner", "workload")


def verify(ctx: typer.Context, directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Check that a table is as it was written.

    Compares all files, rows and columns, and the index's statistics of some files.
    """
    with spark_of(ctx) as spark:
        report = hedgerow.table(spark, directory).verify()
    count, checked = report["rows_compared"], report["files_with_statistics_checked"]
    compared = all_or(count, report["rows"])
    if count or not report["rows"]:
        verdict = "is as it was written" + (", as far as its rows were compared" if "not_compared" in report else "")
    else:
        none = "fits its index, but no row was compared"
        verdict = none if checked else "holds no rows in files as Hedgerow wrote them"
    Output(as_json).answer(
        report,
        {
            "table": f"{report['path']} {verdict}",
            "rows": f"{report['rows']:,}, {compared} compared",
            "not compared": "\n".join(report.get("not_compared", ())) or None,
            "files": f"{report['files']:,}, the statistics of {checked:,} compared",
            "not ours": f"{report['unknown_files']:,} files, always opened" if report.get("unknown_files") else None,
            "replicas": ", ".join(f"{name}: {status}" for name, status in report.get("replicas", {}).items()) or None,
        },
    )


def explain(
    ctx: typer.Context,
    directory: DirectoryArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SQL that reads the table, or only a condition.")],
    count: Annotated[bool, typer.Option("--count/--no-count", help="Count what opened files hold in vain.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Tell which files of a table a query opens and skips, and why."""
    with spark_of(ctx) as spark:
        explanation = hedgerow.explain(spark, directory, query, count)
    output = Output(as_json)
    if as_json:
        output.answer(explanation.to_dict(), {})
        return
    rows = [["opened" if g.opened else "skipped", f"{len(g.files):,}", g.because] for g in explanation.groups]
    output.answer({}, {"condition": explanation.condition, "opened": explanation.sentence})
    output.table([("", False), ("files", True), ("because", False)], rows)
    for hint in explanation.hints:
        output.line("note", hint)


def files(
    ctx: typer.Context,
    directory: DirectoryArgument,
    where: Annotated[str | None, typer.Option(help="The condition, as Spark reads it; without it, all files.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the Parquet files of a table that may hold rows of a condition, for another engine to read.

    Each line of the output is the full path of a file.
    """
    with spark_of(ctx) as spark:
        paths = hedgerow.table(spark, directory).plain_files(where)
    output = Output(as_json)
    if as_json:
        output.answer({"files": paths}, {})
        return
    if any(len(path.splitlines()) > 1 for path in paths):
        raise HedgerowError(f"a path in {directory} has a line break, so its files can be listed with --json only")
    for path in paths:
        typer.echo(path)


def show(
    ctx: typer.Context,
    directory: DirectoryArgument,
    html: Annotated[Path, typer.Option(metavar="FILE", help="Where the page is written.")],
    workload: Annotated[
        Path | None, typer.Option(help="The queries that are shown; by default those in the table's log.")
    ] = None,
    price: Annotated[float | None, typer.Option(help="What an hour of the cluster costs.")] = None,
    price_per_tb: Annotated[float | None, typer.Option(help="What a terabyte costs that queries read.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw a table as a page of HTML: what queries took before and take now, which files they open, the tree."""
    queries = None if workload is None or is_log(workload) else hedgerow.Workload.from_file(workload)
    with spark_of(ctx) as spark:
        shown = hedgerow.show(spark, directory, queries, price=price, price_per_tb=price_per_tb)
    shown.save(html)
    every = shown.picture.all_queries
    kinds = [kind.to_dict(shown.picture.prices) for kind in shown.picture.kinds]
    read = "none" if every is None else f"{len(every.queries):,}, which read {share(every.rows_read)} of the rows"
    Output(as_json).answer({"html": str(html), "kinds": kinds}, {"page": str(html), "queries": read})


def describe(ctx: typer.Context, directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Tell what a table is and where it came from."""
    with spark_of(ctx) as spark:
        facts = hedgerow.table(spark, directory).describe()
    Output(as_json).answer(facts, summary(facts))


def repair(ctx: typer.Context, directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Look again at the tables to which foreign keys lead, after they changed.

    What the index says of their rows holds for one version of them.
    """
    with spark_of(ctx) as spark:
        facts = hedgerow.table(spark, directory).repair().describe()
    Output(as_json).answer(facts, summary(facts))


def relearn(
    ctx: typer.Context,
    directory: DirectoryArgument,
    workload: WorkloadArgument,
    statistics: Annotated[int, typer.Option(help="Expressions and conditions that the index describes.")] = 300,
    as_json: JsonOption = False,
) -> None:
    """Let a table's index describe what other queries ask for, without moving a row."""
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    with spark_of(ctx) as spark:
        queries = hedgerow.logged(spark, directory) if queries is None else queries
        table = hedgerow.table(spark, directory)
        before = table.score(queries).rows_read
        after = table.relearn(queries, statistics).score(queries).rows_read
    Output(as_json).answer(
        {"rows_read_before": before, "rows_read": after}, {"rows read": f"{share(after)}, before {share(before)}"}
    )


def doctor(
    ctx: typer.Context,
    directory: Annotated[str | None, typer.Argument(help="Look at this table too.")] = None,
    conf: Annotated[bool, typer.Option("--conf", help="Only print the lines for spark-defaults.conf.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Look at Spark, Java and Delta here, and at a table; tell what keeps queries from skipping files."""
    if conf:
        show_conf(as_json)
        return
    with spark_of(ctx) as spark:
        hedgerow.attach(spark)
        found = hedgerow.doctor(spark, directory)
    findings = [finding for finding in found if finding.subject != "attached"]  # that was the command's own session
    output = Output(as_json)
    if as_json:
        output.answer({"findings": [asdict(finding) for finding in findings]}, {})
    else:
        rows = [["ok" if f.advice is None else "look", f.subject, f.fact, f.advice or ""] for f in findings]
        output.table([("", False), ("", False), ("found", False), ("what to do", False)], rows)
    if any(f.subject == "table" for f in findings):  # it could not be opened
        raise typer.Exit(1)


def history(ctx: typer.Context, directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """List what Hedgerow wrote to a table, the newest first."""
    with spark_of(ctx) as spark:
        operations = hedgerow.table(spark, directory).history()
    output = Output(as_json)
    if as_json:
        output.answer({"history": operations}, {})
        return
    names = [name for name in _HISTORY if any(name in facts for facts in operations)]
    rows = [[_shown(facts.get(name)) for name in names] for facts in operations]
    output.table([(name, name in ("version", "rows")) for name in names], rows)


def rollback(ctx: typer.Context, directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Put back the files that the last rewrite of a Delta table replaced; rows appended since then stay."""
    with spark_of(ctx) as spark:
        facts = hedgerow.table(spark, directory).rollback().describe()
    Output.line("note", "the files that the last rewrite replaced are back; those of the rewrite stay until VACUUM")
    Output(as_json).answer(facts, summary(facts))


def _shown(fact: object) -> str:
    return "" if fact is None else f"{fact:,}" if isinstance(fact, int) else str(fact)
