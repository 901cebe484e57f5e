"""The sub-command `query`: runs SQL on the files that matter, explains it, or compares it with an ordinary run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow
from hedgerow.cli.app import spark_of
from hedgerow.cli.output import Output
from hedgerow.core.errors import HedgerowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def query(
    ctx: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A table is named by its place as parquet.`/a/place`.")],
    limit: Annotated[int, typer.Option(min=0, help="Rows to show; 0: all.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Tell what would be opened, and run nothing.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Run it with and without skipping.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a row.")] = False,
) -> None:
    """Run SQL on just the files that matter.

    That goes for tables that apply wrote; others are read as ever.
    """
    output = Output(as_json)
    with spark_of(ctx) as spark:
        _check_places(spark, sql)
        if explain:
            _explain(spark, sql, output)
        elif compare:
            _compare(spark, sql, output)
        else:
            output.rows(hedgerow.route(spark, sql), limit)


def _explain(spark: SparkSession, sql: str, output: Output) -> None:
    """Print for each directory how many files the query opens, and how many it would open without the index.

    With `--json` the names of the opened files are listed too. The query does not run.
    """
    _check_query(spark, sql)
    from hedgerow.spark.storage.paths import files_by_folder, plain_path

    opened = files_by_folder(hedgerow.route(spark, sql))
    tables: list[dict[str, Any]] = [
        {
            "path": plain_path(path),
            "opened": sorted(file.removeprefix(f"{path}/") for file in opened.get(path, [])),
            "files": _files_of(spark, path, files),
        }
        for path, files in sorted(files_by_folder(spark.sql(sql)).items())
    ]
    if output.as_json:
        output.answer({"tables": tables}, {})
    else:
        rows = [[t["path"], f"{len(t['opened']):,}", f"{t['files']:,}"] for t in tables]
        output.table([("table", False), ("opened", True), ("files", True)], rows)


def _files_of(spark: SparkSession, path: str, named: Sequence[str]) -> int:
    """Count the files of a table; for a Delta table, `named` has only the files that Delta would open."""
    from hedgerow.spark.storage.delta_log import delta_log, is_delta

    now = len(delta_log(spark, path).snapshot().files.names) if is_delta(spark, path) else 0
    return max(now, len(named))


_PLACE = re.compile(r"\b(parquet|delta)\s*\.\s*`((?:[^`]|``)+)`", re.IGNORECASE)


def _check_places(spark: SparkSession, sql: str) -> None:
    """HedgerowError where Spark would read a Delta table's old files too, or not say that it wants a whole path."""
    from hedgerow.core.predicates.sql_text import in_backticks
    from hedgerow.spark.storage.delta_log import is_delta

    for kind, quoted in _PLACE.findall(sql):
        place = quoted.replace("``", "`")
        whole = place if "://" in place else str(Path(place).absolute())
        if (kind.lower() == "parquet" or whole != place) and is_delta(spark, whole):
            raise HedgerowError(
                f"{place} is a Delta table: name it by its whole path, as in delta.{in_backticks(whole)}"
            )


def _check_query(spark: SparkSession, sql: str) -> None:
    """HedgerowError for a statement that is no query: Spark would run it at once."""
    from hedgerow.spark.start.session import first_line, spark_errors

    try:
        spark._jsparkSession.sessionState().sqlParser().parseQuery(sql)
    except spark_errors() as error:
        raise HedgerowError(f"only a query can be explained or compared: {first_line(error)}") from error


def _compare(spark: SparkSession, sql: str, output: Output) -> None:
    """Print the files and seconds of a query with skipping and without it."""
    from hedgerow.pipeline.compare import compare

    _check_query(spark, sql)
    sides = compare(spark, sql)
    if output.as_json:
        output.answer({side.name: asdict(side) for side in sides}, {})
        return
    rows = [[side.name, f"{side.files:,}", f"{side.seconds:,.2f}", f"{side.rows:,}"] for side in sides]
    output.table([("", False), ("files", True), ("seconds", True), ("rows", True)], rows)
