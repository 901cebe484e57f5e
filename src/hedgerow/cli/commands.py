"""The command `hedgerow`: every sub-command reads its arguments, makes one call and hands the answer to `Output`.

Data goes to standard output; warnings, errors and progress go to standard error. Nothing heavy is imported before a
command runs, so that asking for help is quick.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from types import NoneType, UnionType
from typing import IO, TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

import hedgerow
from hedgerow.cli.output import Output, all_or, beside, share, summary
from hedgerow.core.errors import HedgerowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.core.learning.synthetic_queries import Recurrence
    from hedgerow.core.workload.candidate_cuts import Kind

# What a JVM and Spark say whenever they start; the first other line is why they did not.
_USUAL = re.compile(r"\s*$|.*\bWARN|Using |Setting |To adjust |\s+at ")


class Commands(TyperGroup):
    """Tells a foreseen error in one line; any other keeps its traceback, for it is a bug."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if (told := _told(error)) is None:
                raise
            Output.tell("error", told)
            raise typer.Exit(1) from None


# Plain help: rich would draw boxes, and takes its time to be imported.
app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


@dataclass(frozen=True)
class Options:
    """What every command needs to get its Spark session."""

    master: str = "local[*]"
    memory: str = "4g"
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def wants_log(self) -> bool:
        """Spark's log is off unless asked for: what goes wrong comes back as an error."""
        return "spark.log.level" in self.conf


Many = list[str] | None
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="data/orders, orders.parquet or a catalog table.")]
Queries = Annotated[Path, typer.Argument(metavar="WORKLOAD", help="SQL split by semicolons, or a saved .jsonl file.")]
Directory = Annotated[
    str, typer.Argument(metavar="DIRECTORY", help="Where a table is that apply wrote; also the name of a Delta table.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hedgerow {hedgerow.__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    ctx: typer.Context,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver, which locally does all the work.")] = "4g",
    conf: Annotated[Many, typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable.")] = None,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Learns from queries which rows belong in one file, and makes Spark open only the files that matter."""
    ctx.obj = Options(master, memory, dict(_pair("--conf", text) for text in conf or ()))


@app.command()
def learn(
    ctx: typer.Context,
    source: Source,
    workload: Queries,
    out: Annotated[Path, typer.Option(help="Where the layout is written.")],
    learner: Annotated[str, typer.Option(help="Such as qdtree, woodblock, zorder_learned.")] = "qdtree",
    block_rows: Annotated[int | None, typer.Option(help="Rows that a block should have at least.")] = None,
    block_bytes: Annotated[str, typer.Option(help="About the size of a block; --block-rows wins.")] = "64MB",
    sample_rows: Annotated[int | None, typer.Option(help="Rows to learn from; by default 100 a block.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same layout.")] = 0,
    table: Annotated[str | None, typer.Option(help="The name that the queries have for SOURCE.")] = None,
    given: Annotated[Many, typer.Option(metavar="DIRECTORY", help="Learn for what this table serves badly.")] = None,
    cuts: Annotated[str, typer.Option(help="What may divide rows: atoms, or atoms+subtrees.")] = "atoms",
    recurrence: Annotated[str, typer.Option(help="How likely literals come back, 0 to 1; auto asks the log.")] = "auto",
    exact: Annotated[bool, typer.Option("--exact/--from-sample", help="Count small cells in all rows.")] = True,
    param: Annotated[Many, typer.Option(metavar="KEY=VALUE", help="For the learner: most=2, columns=a,b...")] = None,
    as_json: Json = False,
) -> None:
    """Learn from WORKLOAD how to group the rows of SOURCE."""
    params = _params(learner, param or ())
    queries = hedgerow.Workload.from_file(workload)
    if not out.absolute().parent.is_dir():  # not after an hour of learning
        raise HedgerowError(f"the layout cannot be written to {out}: there is no such directory")
    with _spark(ctx) as spark:
        learned = hedgerow.learn(
            spark,
            source,
            queries,
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
            **params,
        )
    learned.save(out)
    made, kind, count = learned.provenance, learned.layout.kind, len(learned.predicates)
    document = {"layout": str(out), "kind": kind, "table": learned.table, "blocks": learned.blocks, "queries": count}
    Output(as_json).answer(
        {**document, **made, "warnings": list(learned.warnings)},
        {
            "layout": str(out),
            "table": learned.table,
            "kind": f"{kind}, by {learner}",
            "blocks": f"{learned.blocks:,}, meant to have {made['block_rows']:,} rows or more",
            "learned from": f"{count:,} queries, {made['sample_rows']:,} rows",
            "rows read": beside(made.get("given")),
        },
    )


@app.command()
def score(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A table that apply wrote; with --layout any.")],
    workload: Queries,
    layout: Annotated[Path | None, typer.Option(help="What if SOURCE had this layout? Nothing is written.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="With --layout: from all rows, not from a sample.")] = False,
    as_json: Json = False,
) -> None:
    """Tell what WORKLOAD reads of a table, or would read of one.

    Without --layout the answer is exact, and comes from the index alone.
    """
    queries = hedgerow.Workload.from_file(workload)
    learned = None if layout is None else hedgerow.Learned.load(layout)
    with _spark(ctx) as spark:
        if learned is None:
            found = hedgerow.table(spark, source).score(queries)
        else:
            found = hedgerow.score(spark, source, queries, learned, exact=exact)
    Output(as_json).answer(
        json.loads(found.to_json()),
        {
            "rows read": share(found.rows_read),
            "blocks read": f"{share(found.blocks_read)} of {found.blocks:,}",
            "bytes read": share(found.bytes_read),
            "rows that match": None if found.selectivity is None else share(found.selectivity),
            "queries": f"{len(found.queries):>6,}",
        },
    )


@app.command()
def apply(
    ctx: typer.Context,
    source: Source,
    layout: Annotated[Path, typer.Argument(metavar="LAYOUT", help="A layout that learn wrote.")],
    to: Annotated[
        str | None, typer.Option(help="The directory to write to; without it SOURCE is a Delta table.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="In place: only these partitions, as in SQL.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="In place: begin again when others were faster.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    max_block_rows: Annotated[int | None, typer.Option(help="A block with more rows becomes several files.")] = None,
    sort_by: Annotated[Many, typer.Option(metavar="COLUMN", help="Order in a file; else the layout's own.")] = None,
    compression: Annotated[str | None, typer.Option(help="Such as zstd; by default Spark's own choice.")] = None,
    replica: Annotated[str | None, typer.Option(help="Write a full copy of the table at --to, of this name.")] = None,
    statistics: Annotated[int, typer.Option(min=0, help="Expressions and conditions that the index holds.")] = 300,
    as_json: Json = False,
) -> None:
    """Write SOURCE in a layout to a new directory, or a Delta table in place, with an index.

    A block is a file; the index says what each cannot contain.
    """
    learned = hedgerow.Learned.load(layout)
    with _spark(ctx) as spark:
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
        found = written.describe()
    Output(as_json).answer(found, summary(found))


@app.command()
def query(
    ctx: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A table is named by its place as parquet.`/a/place`.")],
    limit: Annotated[int, typer.Option(min=0, help="Rows to show; 0: all.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Tell what would be opened, and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a row.")] = False,
) -> None:
    """Run SQL on just the files that matter.

    That goes for tables that apply wrote; others are read as ever.
    """
    output = Output(as_json)
    with _spark(ctx) as spark:
        if explain:
            _explain(spark, sql, output)
        else:
            output.rows(hedgerow.route(spark, sql), limit)


@app.command()
def verify(ctx: typer.Context, directory: Directory, as_json: Json = False) -> None:
    """Prove that a table is what was written.

    All files, rows and columns are compared, and of some files what the index says of them.
    """
    with _spark(ctx) as spark:
        found = hedgerow.table(spark, directory).verify()
    Output(as_json).answer(
        found,
        {
            "table": f"{found['path']} is as it was written",
            "rows": f"{found['rows']:,}, {all_or(found.get('rows_compared', found['rows']), found['rows'])} compared",
            "files": f"{found['files']:,}, the statistics of {found['files_with_statistics_checked']:,} compared",
            "not ours": f"{found['unknown_files']:,} files, always opened" if found.get("unknown_files") else None,
            "checksum": found.get("checksum"),
            "replicas": ", ".join(f"{name}: {told}" for name, told in found.get("replicas", {}).items()) or None,
        },
    )


@app.command()
def describe(ctx: typer.Context, directory: Directory, as_json: Json = False) -> None:
    """Tell what a table is and where it came from."""
    with _spark(ctx) as spark:
        found = hedgerow.table(spark, directory).describe()
    Output(as_json).answer(found, summary(found))


@contextmanager
def _spark(ctx: typer.Context) -> Iterator[SparkSession]:
    """A session, in which Hedgerow's warnings are single lines."""
    options: Options = ctx.obj

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, hedgerow.HedgerowWarning):
            Output.tell("warning", str(message))
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        warnings.simplefilter("always", hedgerow.HedgerowWarning)
        with _session(options) as spark:
            # PySpark logs a failed query once more, with all of Java's frames.
            logging.disable(logging.NOTSET if options.wants_log else logging.CRITICAL)
            try:
                yield spark
            finally:
                logging.disable(logging.NOTSET)


@contextmanager
def _session(options: Options) -> Iterator[SparkSession]:
    """A session of our own, stopped at the end; tests put theirs in its place."""
    from hedgerow.spark.start.session import session, spark_errors

    with nullcontext(StringIO()) if options.wants_log else _silenced() as held:
        try:
            spark = session(options.memory, options.master, **{"spark.log.level": "OFF", **options.conf})
        except spark_errors() as error:
            raise HedgerowError(f"Spark did not start: {_why(held) or _told(error)}") from error
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _silenced() -> Iterator[IO[str]]:
    """Standard error goes to a file; a process that starts meanwhile, as Spark's JVM does, writes there to its end."""
    with TemporaryFile("w+", errors="replace") as held:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield held
        finally:
            os.dup2(before, 2)
            os.close(before)


def _why(held: IO[str]) -> str | None:
    """Why a JVM did not start, by the first line of it that is not the usual."""
    held.seek(0)
    line = next((line for line in held if not _USUAL.match(line)), None)
    return line and re.sub(r"^Exception in thread \S+ [\w.$]+: ", "", line).strip()


def _told(error: Exception) -> str | None:
    """One sentence for an error of ours or of Spark; None for any other."""
    if isinstance(error, HedgerowError):
        return str(error)
    if "pyspark" in sys.modules:
        from hedgerow.spark.start.session import first_line, spark_errors

        return first_line(error) if isinstance(error, spark_errors()) else None
    return None


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise HedgerowError(f"{option} takes KEY=VALUE, not {text!r}")
    return key, value


def _recurrence(value: str) -> Recurrence:
    try:
        return "auto" if value == "auto" else float(value)
    except ValueError:
        raise HedgerowError(f"--recurrence is a number from 0 to 1, or auto, not {value!r}") from None


def _params(learner: str, given: Sequence[str]) -> dict[str, Any]:
    """The learner's parameters, each of the type that the learner declares."""
    from hedgerow.pipeline.learner_names import make_learner

    cls: Any = type(make_learner(learner))
    kinds = {f.name: get_type_hints(cls)[f.name] for f in fields(cls)}
    found = {}
    for key, value in (_pair("--param", text) for text in given):
        if key not in kinds:
            raise HedgerowError(f"the learner {learner} takes {', '.join(kinds) or 'no parameters'}, not {key!r}")
        try:
            found[key] = _value(kinds[key], value)
        except (ValueError, KeyError):
            raise HedgerowError(f"--param {key} of the learner {learner} cannot be {value!r}") from None
    return found


def _value(kind: Any, text: str) -> Any:
    if get_origin(kind) in (Union, UnionType):  # such as `int | None`
        kind = next(k for k in get_args(kind) if k is not NoneType)
    if get_origin(kind) is tuple:
        return tuple(_value(get_args(kind)[0], part.strip()) for part in text.split(",") if part.strip())
    if kind is bool:
        return {"true": True, "false": False}[text.lower()]
    return kind(text) if kind in (int, float) else text


def _explain(spark: SparkSession, sql: str, output: Output) -> None:
    """By directory: the files that the query opens, out of those it would open if nobody routed it."""
    from hedgerow.spark.start.session import first_line, spark_errors

    try:  # of a statement, for Spark runs those at once
        spark._jsparkSession.sessionState().sqlParser().parseQuery(sql)
    except spark_errors() as error:
        raise HedgerowError(f"only a query can be explained: {first_line(error)}") from error
    opened = _by_directory(hedgerow.route(spark, sql).inputFiles())
    tables: list[dict[str, Any]] = [
        {"path": path, "opened": sorted(opened.get(path, [])), "files": len(names)}
        for path, names in sorted(_by_directory(spark.sql(sql).inputFiles()).items())
    ]
    if output.as_json:
        output.answer({"tables": tables}, {})
    else:
        rows = [[t["path"].removeprefix("file://"), f"{len(t['opened']):,}", f"{t['files']:,}"] for t in tables]
        output.table([("table", False), ("opened", True), ("files", True)], rows)


def _by_directory(files: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in files:
        path, _, name = file.rpartition("/")
        found.setdefault(path, []).append(name)
    return found


def main() -> None:
    app(prog_name="hedgerow")
