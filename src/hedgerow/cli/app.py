"""Shared by the sub-commands: the app, their common arguments, and the Spark session they run in."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import hedgerow
from hedgerow.cli.examples import PROGRAM, epilog, write_epilog
from hedgerow.cli.output import Output
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.jvm_output import jvm_output, start_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Commands(TyperGroup):
    """Prints a foreseen error in one line; any other error is a bug and keeps its traceback, as all do with --debug."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            Output.line("error", "interrupted")
            raise typer.Exit(130) from None
        except Exception as error:
            if ctx.params.get("debug") or (sentence := one_sentence(error)) is None:
                raise
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            Output.line("error", with_flags(command, " ".join(sentence.split())))
            raise typer.Exit(1) from None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_epilog(self.epilog, formatter)


# Plain help: rich would draw boxes and is slow to import.
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=epilog(PROGRAM),
)


@dataclass(frozen=True)
class Options:
    """The options of every command, for its Spark session."""

    master: str = "local[*]"
    memory: str = "4g"
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def wants_log(self) -> bool:
        """True if Spark's log is printed; by default it is off, because failures are raised as errors."""
        return "spark.log.level" in self.conf


_ARGUMENT = re.compile(r"\b([a-z_]+)=(?:'(\w+)'|(?=[\s,.:;]|$))")  # such as to= or learner='mto' in a message
Texts = list[str] | None
SourceArgument = Annotated[
    str, typer.Argument(metavar="SOURCE", help="data/orders, orders.parquet or a catalog table.")
]
WorkloadArgument = Annotated[
    Path, typer.Argument(metavar="WORKLOAD", help="SQL split by semicolons, a saved .jsonl file, or the word log.")
]
DirectoryArgument = Annotated[
    str, typer.Argument(metavar="DIRECTORY", help="Where a table is that apply wrote; also the name of a Delta table.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hedgerow {hedgerow.__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    ctx: typer.Context,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    memory: Annotated[str, typer.Option(help="Memory of the Spark driver, which locally does all the work.")] = "4g",
    conf: Annotated[Texts, typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable.")] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from, and all that long warnings leave out.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Learns from queries which rows belong in one file, and makes Spark open only the files that matter."""
    ctx.obj = Options(master, memory, dict(key_value("--conf", text) for text in conf or ()))


@contextmanager
def spark_of(ctx: typer.Context) -> Iterator[SparkSession]:
    """Give a session; while it lives, Hedgerow's warnings are printed without the line of code that they come from."""
    options: Options = ctx.obj
    is_debug = bool(ctx.find_root().params.get("debug"))

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, hedgerow.HedgerowWarning):
            Output.line("warning", with_flags(ctx.command, str(message)))
        else:
            usual(message, category, *where, **more)

    with warnings.catch_warnings():
        usual, warnings.showwarning = warnings.showwarning, show
        warnings.simplefilter("always", hedgerow.HedgerowWarning)
        with _session(options) as spark:
            # Otherwise PySpark also logs a failed query, with Java's whole stack trace.
            logging.disable(logging.NOTSET if options.wants_log or is_debug else logging.CRITICAL)
            own = logging.getLogger("hedgerow")
            if is_debug:
                own.addHandler(notes := _Notes(logging.INFO))
                own.setLevel(logging.INFO)
            try:
                yield spark
            finally:
                logging.disable(logging.NOTSET)
                if is_debug:
                    own.removeHandler(notes)
                    own.setLevel(logging.NOTSET)


class _Notes(logging.Handler):
    """Prints log records as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        Output.line("note", record.getMessage())


@contextmanager
def _session(options: Options) -> Iterator[SparkSession]:
    """Give a new session, which is stopped at the end; tests replace this function."""
    from hedgerow.spark.start.pyspark_version import check_pyspark
    from hedgerow.spark.start.session import session, spark_errors

    check_pyspark()
    with nullcontext(StringIO()) if options.wants_log else jvm_output() as output:
        try:
            spark = session(options.memory, options.master, **{"spark.log.level": "OFF", **options.conf})
        except spark_errors() as error:
            raise HedgerowError(f"Spark did not start: {start_failure(output) or one_sentence(error)}") from error
    try:
        yield spark
    finally:
        spark.stop()


def one_sentence(error: Exception) -> str | None:
    """Return one sentence for an error of Hedgerow or Spark; None for any other."""
    if isinstance(error, HedgerowError):
        return str(error)
    if "pyspark" in sys.modules:
        from hedgerow.spark.start.session import first_line, spark_errors

        return first_line(error) if isinstance(error, spark_errors()) else None
    return None


def with_flags(command: Any, message: str) -> str:
    """Return a message of a Python function with the command's flags in place of arguments: `table=` is `--table`."""
    names = [name for parameter in getattr(command, "params", ()) for name in parameter.opts if name.startswith("--")]
    flags = {name[2:].replace("-", "_"): name for name in names}

    def flag(argument: re.Match[str]) -> str:
        name, value = argument.groups()
        return argument[0] if name not in flags else flags[name] if value is None else f"{flags[name]} {value}"

    return _ARGUMENT.sub(flag, message)


def key_value(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise HedgerowError(f"{option} takes KEY=VALUE, not {text!r}")
    return key, value


def other_tables(texts: Sequence[str]) -> dict[str, str]:
    """Return the places of tables by the names that queries have for them: `users=lake/users`."""
    others = dict(key_value("--other", text) for text in texts)
    for name in others:
        if not name.isidentifier():
            raise HedgerowError(f"--other takes a name without dots and quotes, not {name!r}")
    return others


def name_tables(spark: SparkSession, others: Mapping[str, str]) -> None:
    """Let the session know these tables by their names."""
    from hedgerow.spark.storage.source import open_source

    for name, place in others.items():
        open_source(spark, place, name).frame.createOrReplaceTempView(name)


def is_log(workload: Path) -> bool:
    """True if the queries are to be read from the table's own log."""
    return str(workload) == "log" and not workload.exists()
