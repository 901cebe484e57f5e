"""The command `hedgerow`: every sub-command reads its arguments, makes one call and hands the answer to `Output`.

Data goes to standard output; warnings, errors and progress go to standard error. Nothing heavy is imported before a
command runs, so that asking for help is quick.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typer

import hedgerow
from hedgerow.cli.advice import show_advice, show_each
from hedgerow.cli.app import (
    JsonOption,
    SourceArgument,
    Texts,
    WorkloadArgument,
    app,
    is_log,
    key_value,
    spark_of,
)
from hedgerow.cli.demo_command import demo
from hedgerow.cli.jar_command import jar
from hedgerow.cli.log_commands import auto, calibrate, import_log, log
from hedgerow.cli.output import Output, paired_share, seconds_shown, share, summary
from hedgerow.cli.table_commands import describe, doctor, explain, history, relearn, repair, rollback, show, verify
from hedgerow.core.errors import HedgerowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.core.effort import Effort
    from hedgerow.core.learning.synthetic_queries import Recurrence
    from hedgerow.core.workload.candidate_cuts import Kind
    from hedgerow.core.workload.score import Score
    from hedgerow.pipeline.several_tables import LearnedTables


@app.command()
def learn(
    ctx: typer.Context,
    source: SourceArgument,
    workload: WorkloadArgument,
    out: Annotated[Path, typer.Option(help="Where the layout is written.")],
    learner: Annotated[str, typer.Option(help="Such as qdtree, woodblock, zorder_learned; auto tries all.")] = "qdtree",
    block_rows: Annotated[int | None, typer.Option(help="Rows that a block should have at least.")] = None,
    block_bytes: Annotated[
        str | None, typer.Option(help="About the size of a block; else 64MB, or less where that is faster.")
    ] = None,
    sample_rows: Annotated[int | None, typer.Option(help="Rows to learn from; by default 100 a block.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same layout.")] = 0,
    table: Annotated[str | None, typer.Option(help="The name that the queries have for SOURCE.")] = None,
    given: Annotated[Texts, typer.Option(metavar="DIRECTORY", help="Learn for what this table serves badly.")] = None,
    cuts: Annotated[str, typer.Option(help="What may divide rows: atoms, or atoms+subtrees.")] = "atoms",
    recurrence: Annotated[str, typer.Option(help="How likely literals come back, 0 to 1; auto asks the log.")] = "auto",
    exact: Annotated[
        bool | None,
        typer.Option("--exact/--from-sample", help="Count cells in all rows, or in the sample; else in a million."),
    ] = None,
    effort: Annotated[str, typer.Option(help="How long to learn: quick, normal, or thorough.")] = "normal",
    key: Annotated[
        Texts, typer.Option(metavar="A.X=B.Y", help="A foreign key, for mto and pando; else they are found.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=0, help="Of several tables: how many keys a condition is carried over.")
    ] = None,
    param: Annotated[Texts, typer.Option(metavar="KEY=VALUE", help="For the learner: most=2, columns=a,b...")] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn from WORKLOAD how to group the rows of SOURCE.

    With --learner mto, SOURCE is a directory with a folder for each table, or a database: queries may join them.
    """
    params = _params(learner, param or ())
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    if not out.absolute().parent.is_dir():  # not after an hour of learning
        raise HedgerowError(f"the layout cannot be written to {out}: there is no such directory")
    if out.is_dir():
        raise HedgerowError(f"the layout cannot be written to {out}: that is a directory")
    with spark_of(ctx) as spark:
        learned = hedgerow.learn(
            spark,
            source,
            hedgerow.logged(spark, source, table) if queries is None else queries,
            learner,
            block_rows,
            sample_rows,
            seed,
            block_bytes=block_bytes,
            table=table,
            given=given or (),
            cuts=cast("Kind", cuts),
            recurrence=_recurrence(recurrence),
            exact=exact,
            effort=cast("Effort", effort),
            keys=None if key is None else [_key(text) for text in key],
            steps=steps,
            **params,
        )
    learned.save(out)
    if isinstance(learned, hedgerow.LearnedTables):
        _answer_tables(learned, out, Output(as_json))
        return
    made, kind, count = learned.provenance, learned.layout.kind, len(learned.predicates)
    document = {"layout": str(out), "kind": kind, "table": learned.table, "blocks": learned.blocks, "queries": count}
    document |= {"sort_by": learned.sort_by, **learned.seconds()}
    Output(as_json).answer(
        {**document, **made, "warnings": list(learned.warnings)},
        {
            "layout": str(out),
            "table": learned.table,
            "kind": f"{kind}, by {made['learner']}",
            "blocks": f"{learned.blocks:,}, meant to have {made['block_rows']:,} rows or more",
            "sorted by": learned.sort_by,
            "learned from": f"{count:,} queries, {made['sample_rows']:,} rows",
            "reasons": "\n".join(made.get("reasons", ())) or None,
            "rows read": paired_share(made.get("given")),
            "seconds": None if learned.estimate is None else str(learned.estimate),
        },
    )


@app.command()
def advise(
    ctx: typer.Context,
    source: SourceArgument,
    workload: WorkloadArgument = Path("log"),
    columns: Annotated[
        Texts, typer.Option(metavar="A,B", help="Judge a design of your own, sorted by these columns; repeatable.")
    ] = None,
    learner: Annotated[Texts, typer.Option(help="Try this learner; repeatable. By default all.")] = None,
    budget: Annotated[float, typer.Option(help="Seconds for learning.")] = 120.0,
    block_rows: Annotated[int | None, typer.Option(help="Rows that a block should have at least.")] = None,
    block_bytes: Annotated[
        str | None, typer.Option(help="About the size of a block; else 64MB, or less where that is faster.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The name that the queries have for SOURCE.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the best layout here, for apply.")] = None,
    each: Annotated[
        bool, typer.Option("--each", help="SOURCE is a directory of tables, or a database: advise on each.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what each learner would make of SOURCE for WORKLOAD, and whether a rewrite pays. Nothing is rewritten.

    A plan that --save wrote is refused by apply once SOURCE has changed.
    """
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    if each:
        if queries is None or columns or table or save:
            raise HedgerowError("--each takes a file of queries, but not --columns, --table or --save")
        how = {"learners": learner or None, "budget": budget, "block_rows": block_rows, "block_bytes": block_bytes}
        with spark_of(ctx) as spark:
            show_each(hedgerow.advise_each(spark, source, queries, **how), Output(as_json))
        return
    with spark_of(ctx) as spark:
        found = hedgerow.advise(
            spark,
            source,
            hedgerow.logged(spark, source, table) if queries is None else queries,
            learner or None,
            designs=[[name.strip() for name in design.split(",")] for design in columns or ()],
            budget=budget,
            block_rows=block_rows,
            block_bytes=block_bytes,
            table=table,
        )
    show_advice(found, Output(as_json))
    if save is not None:
        found.save(save)
        Output.line("note", f"the plan of {found.options[0].name} is in {save}")


@app.command()
def score(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A table that apply wrote; with --layout any.")],
    workload: WorkloadArgument,
    layout: Annotated[Path | None, typer.Option(help="What if SOURCE had this layout? Nothing is written.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="With --layout: from all rows, not from a sample.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what WORKLOAD reads of a table, or would read of one.

    Without --layout the answer is exact, and comes from the index alone.
    """
    queries = None if is_log(workload) else hedgerow.Workload.from_file(workload)
    from hedgerow.pipeline.several_tables import loaded

    learned = None if layout is None else loaded(layout)
    with spark_of(ctx) as spark:
        queries = hedgerow.logged(spark, source) if queries is None else queries
        result: Score | dict[str, Score]
        if learned is None:
            result = hedgerow.table(spark, source).score(queries)
        else:
            result = hedgerow.score(spark, source, queries, learned, exact=exact)
    if isinstance(result, dict):
        documents = {name: json.loads(one.to_json()) for name, one in result.items()}
        shown = {
            name: f"{share(one.rows_read)} of rows read, {len(one.queries):,} queries" for name, one in result.items()
        }
        Output(as_json).answer(documents, shown)
        return
    Output(as_json).answer(
        json.loads(result.to_json()),
        {
            "rows read": share(result.rows_read),
            "blocks read": f"{share(result.blocks_read)} of {result.blocks:,}",
            "bytes read": share(result.bytes_read),
            "rows that match": None if result.selectivity is None else share(result.selectivity),
            "seconds a query": seconds_shown(result.seconds, result.seconds_now),
            "queries": f"{len(result.queries):>6,}",
        },
    )


@app.command()
def apply(
    ctx: typer.Context,
    source: SourceArgument,
    layout: Annotated[Path | None, typer.Argument(help="What learn or advise wrote; else it is learned.")] = None,
    workload: Annotated[Path, typer.Option(help="Without LAYOUT: a file of queries; else the log.")] = Path("log"),
    learner: Annotated[str, typer.Option(help="Without LAYOUT: such as qdtree; auto tries all.")] = "qdtree",
    block_bytes: Annotated[str | None, typer.Option(help="Without LAYOUT: about the size of a block.")] = None,
    to: Annotated[
        str | None, typer.Option(help="The directory to write to; without it SOURCE is a Delta table.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="In place: only these partitions, as in SQL.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="In place: begin again when others were faster.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    max_block_rows: Annotated[int | None, typer.Option(help="A block with more rows becomes several files.")] = None,
    sort_by: Annotated[Texts, typer.Option(metavar="COLUMN", help="Order in a file; else the learned one.")] = None,
    compression: Annotated[str | None, typer.Option(help="Such as zstd; by default Spark's own choice.")] = None,
    replica: Annotated[str | None, typer.Option(help="Write a full copy of the table at --to, of this name.")] = None,
    statistics: Annotated[int, typer.Option(min=0, help="Expressions and conditions that the index holds.")] = 300,
    as_json: JsonOption = False,
) -> None:
    """Write SOURCE in a layout to a new directory, or a Delta table in place, with an index.

    A block is a file; the index describes what each file cannot contain.
    """
    from hedgerow.pipeline.several_tables import loaded

    saved = None if layout is None else loaded(layout)
    _params(learner, ())  # an unknown name is refused before Spark starts
    queries = None if saved is not None or is_log(workload) else hedgerow.Workload.from_file(workload)
    with spark_of(ctx) as spark:
        learned = saved
        if learned is None:
            asked = hedgerow.logged(spark, source) if queries is None else queries
            learned = hedgerow.learn(spark, source, asked, learner, block_bytes=block_bytes)
        written = hedgerow.apply(
            spark,
            source,
            learned,
            to,
            where=where,
            retries=retries,
            overwrite=overwrite,
            max_block_rows=max_block_rows,
            sort_by=sort_by or None,
            options={"compression": compression} if compression else None,
            replica=replica,
            statistics=statistics,
        )
        if isinstance(written, dict):
            found = {name: table.describe() for name, table in written.items()}
            shown = {name: f"{facts['blocks']:,} blocks, {facts['files']:,} files" for name, facts in found.items()}
            Output(as_json).answer(found, shown)
            return
        facts = written.describe()
    Output(as_json).answer(facts, summary(facts))


@app.command()
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


def _answer_tables(learned: LearnedTables, out: Path, output: Output) -> None:
    """Prints what was learned of several tables."""
    found = {
        name: {"kind": one.layout.kind, "blocks": one.blocks, "queries": len(one.predicates)}
        for name, one in learned.items()
    }
    keys = list(map(str, learned.references))
    shown = {name: f"{one['blocks']:,} blocks" if one["blocks"] != 1 else "1 block" for name, one in found.items()}
    output.answer(
        {"layout": str(out), "tables": found, "keys": keys},
        {"layout": str(out), **shown, "keys": "\n".join(keys) or None},
    )


def _key(text: str) -> tuple[list[str], list[str]]:
    """A.X=B.Y as the two sides of a key; several columns are separated by commas."""
    sides = [[part.strip() for part in side.split(",")] for side in text.split("=")]
    if len(sides) != 2:
        raise HedgerowError(f"--key takes TABLE.COLUMN=OTHER.COLUMN, not {text!r}")
    return sides[0], sides[1]


def _recurrence(value: str) -> Recurrence:
    try:
        return "auto" if value == "auto" else float(value)
    except ValueError:
        raise HedgerowError(f"--recurrence is a number from 0 to 1, or auto, not {value!r}") from None


def _params(learner: str, given: Sequence[str]) -> dict[str, Any]:
    """The learner's parameters, converted to the types that the learner declares."""
    from hedgerow.pipeline.learner_names import AUTO, make_learner

    if learner == AUTO and not given:
        return {}
    cls: Any = type(make_learner(learner))
    kinds = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
    params = {}
    for key, value in (key_value("--param", text) for text in given):
        if key not in kinds:
            raise HedgerowError(f"the learner {learner} takes {', '.join(kinds) or 'no parameters'}, not {key!r}")
        try:
            params[key] = _value(kinds[key], value)
        except (ValueError, KeyError):
            raise HedgerowError(f"--param {key} of the learner {learner} cannot be {value!r}") from None
    return params


def _value(kind: Any, text: str) -> Any:
    if get_origin(kind) in (Union, UnionType):  # such as `int | None`
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], part.strip()) for part in text.split(",") if part.strip())
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    return kind(text) if kind in (int, float) else text


def _explain(spark: SparkSession, sql: str, output: Output) -> None:
    """Prints for each directory how many files the query opens, and how many it would open without the index.

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
    """How many files there are. Of a Delta table Spark names those that Delta would open, or those of a version."""
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
    """Prints the files and the seconds of a query that skips files, and of one that does not."""
    from hedgerow.pipeline.compare import compare

    _check_query(spark, sql)
    sides = compare(spark, sql)
    if output.as_json:
        output.answer({side.name: asdict(side) for side in sides}, {})
        return
    rows = [[side.name, f"{side.files:,}", f"{side.seconds:,.2f}", f"{side.rows:,}"] for side in sides]
    output.table([("", False), ("files", True), ("seconds", True), ("rows", True)], rows)


for command in (
    demo,
    verify,
    describe,
    show,
    explain,
    doctor,
    history,
    rollback,
    repair,
    relearn,
    log,
    auto,
    calibrate,
    jar,
):
    app.command()(command)
app.command(name="import-log")(import_log)


def main() -> None:
    app(prog_name="hedgerow")
