"""The sub-command `query`: runs SQL on the files that matter, explains it, or compares it with an ordinary run.

A file of queries is compared query by query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hedgerow
from hedgerow.cli.app import Texts, key_value, one_sentence, spark_of
from hedgerow.cli.output import Output
from hedgerow.core.byte_text import byte_text
from hedgerow.core.errors import HedgerowError, shortened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SQL_WIDTH = 60  # of a query in a table of several
_WAYS = "plain", "skipping"
_FIGURES: dict[str, Callable[[float], str]] = {
    "files": "{:,.0f}".format,
    "bytes": byte_text,
    "seconds": "{:,.2f}".format,
}  # of each way, as text


def query(
    ctx: typer.Context,
    sql: Annotated[
        str,
        typer.Argument(metavar="SQL", help="A table is named as parquet.`place` or delta.`place`. Or a file."),
    ],
    table: Annotated[
        Texts, typer.Option(metavar="NAME=PLACE", help="The table that the SQL calls so; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show; 0: all.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Tell what would be opened, and run nothing.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Run it with and without skipping.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a row.")] = False,
) -> None:
    """Run SQL on just the files that matter.

    That goes for tables that apply wrote; others are read as ever.
    """
    output = Output(as_json)
    named = dict(key_value("--table", text) for text in table or ())
    texts = _texts(sql)
    if len(texts) != 1 and not compare:
        raise HedgerowError("a file of queries can only be compared: add --compare")
    with spark_of(ctx) as spark:
        for name, place in named.items():
            _rows_of(spark, place).createOrReplaceTempView(name)
        sql, *more = (_with_whole_places(spark, text) for text in texts)
        if more:
            _compare_each(spark, [sql, *more], output)
        elif explain:
            _explain(spark, sql, output)
        elif compare:
            _compare(spark, sql, output)
        else:
            output.rows(hedgerow.route(spark, sql), limit)


def _rows_of(spark: SparkSession, place: str) -> DataFrame:
    """Return the rows of a table as a user's own query reads them."""
    from hedgerow.spark.storage.delta_log import is_delta
    from hedgerow.spark.storage.source import open_source

    if "/" not in place and spark.catalog.tableExists(place):
        return spark.table(place)
    path = _whole_path(place)
    return spark.read.format("delta").load(path) if is_delta(spark, path) else open_source(spark, place).frame


def _whole_path(place: str) -> str:
    return place if "://" in place else str(Path(place).absolute())


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


def _texts(sql: str) -> list[str]:
    """Return the queries of a file; or the argument itself as a query, without a semicolon at its end."""
    if not sql.endswith(".sql"):
        return [sql.strip().removesuffix(";")]
    workload = hedgerow.Workload.from_file(sql)
    if not len(workload) or workload.skipped:
        raise HedgerowError(f"{sql} cannot be compared: {next(iter(workload.skipped), 'it has no query')}")
    return [query.text for query in workload]


def _with_whole_places(spark: SparkSession, sql: str) -> str:
    """Return the SQL with the whole paths of Delta tables, as Delta wants them.

    HedgerowError for such a table as Parquet files: Spark would read the files of old versions, too."""
    from hedgerow.core.predicates.sql_text import in_backticks
    from hedgerow.spark.storage.delta_log import is_delta

    def whole(match: re.Match[str]) -> str:
        kind, place = match[1], match[2].replace("``", "`")
        path = _whole_path(place)
        if not is_delta(spark, path):
            return match[0]
        if kind.lower() == "parquet":
            raise HedgerowError(f"{place} is a Delta table: name it as delta.{in_backticks(path)}")
        return f"{kind}.{in_backticks(path)}"

    return _PLACE.sub(whole, sql)


def _check_query(spark: SparkSession, sql: str) -> None:
    """HedgerowError for a statement that is no query: Spark would run it at once."""
    from hedgerow.spark.start.session import first_line, spark_errors

    try:
        spark._jsparkSession.sessionState().sqlParser().parseQuery(sql)
    except spark_errors() as error:
        raise HedgerowError(f"only a query can be explained or compared: {first_line(error)}") from error


def _compare(spark: SparkSession, sql: str, output: Output) -> None:
    """Print the files, bytes and seconds of a query with skipping and without it."""
    from hedgerow.pipeline.compare import compare

    _check_query(spark, sql)
    sides = compare(spark, sql)
    if output.as_json:
        output.answer({side.name: asdict(side) for side in sides}, {})
        return
    figures = [[text(getattr(side, figure)) for figure, text in _FIGURES.items()] for side in sides]
    rows = [[side.name, *own, f"{side.rows:,}"] for side, own in zip(sides, figures, strict=True)]
    output.table([("", False), *((title, True) for title in (*_FIGURES, "rows"))], rows)


def _compare_each(spark: SparkSession, texts: Sequence[str], output: Output) -> None:
    """Print the files, bytes and seconds of each query with skipping and without it, and their sums."""
    from hedgerow.pipeline.compare import compare

    documents: list[dict[str, Any]] = []
    for text in texts:
        try:
            _check_query(spark, text)
            documents.append({"query": text, **{side.name: asdict(side) for side in compare(spark, text)}})
        except Exception as error:
            if (sentence := one_sentence(error)) is None:
                raise
            documents.append({"query": text, "error": sentence})
    if output.as_json:
        output.answer({"queries": documents}, {})
        return
    timed = [document for document in documents if "error" not in document]
    total = {way: {figure: sum(d[way][figure] for d in timed) for figure in _FIGURES} for way in _WAYS}
    named = [(shortened(" ".join(d["query"].split()), _SQL_WIDTH), d) for d in documents]
    rows = [[name, *_figures(d)] for name, d in (*named, ("all of them", total))]
    titles = [(f"{title}, {way}", True) for title in _FIGURES for way in _WAYS]
    output.table([("query", False), *titles, ("", False)], rows)
    output.answer({}, {"answers": f"equal, with skipping and without, for {len(timed)} of {len(documents)} queries"})


def _figures(document: dict[str, Any]) -> list[str]:
    if "error" in document:
        return [*[""] * len(_FIGURES) * len(_WAYS), shortened(document["error"], _SQL_WIDTH)]
    return [*(text(document[way][figure]) for figure, text in _FIGURES.items() for way in _WAYS), ""]
