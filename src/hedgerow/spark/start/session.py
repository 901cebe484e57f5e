"""Starts a Spark session, changes settings for a while, and reads the settings that decide what predicates mean."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hedgerow.core.errors import EngineError, HedgerowError
from hedgerow.spark.extensions import ENGINES_OFF
from hedgerow.spark.start.delta_jars import PACKAGES, delta_settings, loaded
from hedgerow.spark.start.java import NO_JAVA, find_java
from hedgerow.spark.start.machine_lock import machine_lock
from hedgerow.spark.start.pyspark_version import check_pyspark, check_spark_version
from hedgerow.spark.start.ship import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")
# The number of tasks that plan a query of a Delta table. Delta's default of 50 costs a local session 0.15 s more.
_LOCAL_DELTA = {"spark.databricks.delta.snapshotPartitions": "2"}
OWN_QUERIES = "hedgerow"  # the tag of jobs that Hedgerow runs by itself; the same as in UserQueries.java
# With one of these settings Spark parses SQL texts in another way than Hedgerow does.
OTHER_GRAMMAR = ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers")


def local_session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """Start a local session on the Java of `find_java`; settings as `spark_sql_shuffle_partitions="8"`."""
    check_pyspark()
    return _started(memory, master, _dotted(settings))


def session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """Start a local session that also reads Delta tables, if `spark/start/delta_jars` finds Delta's jars.

    Without the jars, or if an earlier session started a JVM without them, the session works but cannot read Delta.
    """
    check_pyspark()
    from pyspark import SparkContext

    chosen = {**(_LOCAL_DELTA if master.startswith("local") else {}), **_dotted(settings)}
    is_too_late = SparkContext._jvm is not None and not loaded(SparkContext._jvm)
    with machine_lock("fetch"):  # processes that fetch the same jars at once damage each other's files
        delta = {} if is_too_late else delta_settings(chosen, fetch=True)
        if PACKAGES in delta:
            try:
                return _started(memory, master, {**chosen, **delta})
            except spark_errors():
                delta = {}  # Maven is not reachable
    return _started(memory, master, {**chosen, **delta})


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {key if "." in key else key.replace("_", "."): value for key, value in settings.items()}


def _started(memory: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    home = find_java()
    if home is None:
        raise HedgerowError(NO_JAVA)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages
    from pyspark.sql import SparkSession
    from pyspark.sql.utils import is_remote as uses_connect

    if uses_connect():
        raise HedgerowError("this process uses Spark Connect, so it cannot start Spark: start it in another process")
    builder = SparkSession.builder.master(master).appName("hedgerow")
    defaults = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    for key, value in {**defaults, **settings}.items():
        builder = builder.config(key, value)
    warehouse = Path("spark-warehouse").absolute()
    if not warehouse.exists():
        atexit.register(_remove_if_empty, warehouse)
    return builder.getOrCreate()


def _remove_if_empty(warehouse: Path) -> None:
    """Remove the folder that Spark makes in the current one for tables of its catalog, if it has none."""
    with suppress(OSError):
        warehouse.rmdir()


def is_remote(spark: SparkSession) -> bool:
    """True if this is a Spark Connect session; it runs queries and returns results, but gives no access to a JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def needs_jvm(spark: SparkSession, task: str) -> None:
    """Raise HedgerowError if the session is one of Spark Connect; `task` is a verb for the message."""
    if is_remote(spark):
        raise HedgerowError(f"to {task} takes a classic Spark session; over Spark Connect, read and route work")


def check_grammar(spark: SparkSession) -> None:
    """Raise HedgerowError if Spark parses SQL texts in another way than Hedgerow does."""
    if any(str(spark.conf.get(key)).lower() == "true" for key in OTHER_GRAMMAR):
        names = " and ".join(OTHER_GRAMMAR)
        raise HedgerowError(f"{names} change how Spark reads SQL texts: unset both to learn and to write")


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that Spark raises, from Python or from the JVM, and Hedgerow's own ones for them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, EngineError


_JAVA_CLASS = re.compile(r"^(?:[a-z]\w*\.)+[\w$]+: (?=\S+ )")  # of an exception whose message has several words

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(\w+)")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message; of the innermost Java exception if there is one.

    Java's class is left out, unless the message needs it: some have no words beside a path or a number."""
    java = getattr(error, "java_exception", None)
    while java is not None and (cause := java.getCause()) is not None and not _repeats(java, cause):
        java = cause
    lines = [line.strip() for line in str(error if java is None else java.toString()).splitlines() if line.strip()]
    if "Traceback (most recent call last):" in lines:
        missing = _NO_MODULE.match(lines[-1])  # a Python function failed; its exception is the last line
        return _without_module(missing[1]) if missing else lines[-1]
    return _JAVA_CLASS.sub("", lines[0]) if lines else type(error).__name__


def _without_module(name: str) -> str:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    python = "the executors' Python" if context is None else f"{context.pythonExec} on the executors"
    return f"{python} has no {name}: install it there, or name another Python in PYSPARK_PYTHON"


def _repeats(java: Any, cause: Any) -> bool:
    """True if a message has its innermost cause's in it: `Cannot run program "python": error=13, Permission denied`."""
    message, of_cause = java.getMessage() or "", cause.getMessage()
    says_more = bool(of_cause) and message.endswith(f": {of_cause}") and cause.toString() not in message
    return says_more and cause.getCause() is None


_ERROR_LOGS = "SQLQueryContextLogger", "DataFrameQueryContextLogger"
_is_quiet = ContextVar("_is_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from logging each error of Spark while the body runs; the caller reports the errors that matter."""
    from pyspark.logger import PySparkLogger

    for name in _ERROR_LOGS:
        PySparkLogger.getLogger(name).addFilter(_is_wanted)  # a logger keeps a filter once
    before = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def _is_wanted(record: logging.LogRecord) -> bool:
    return not _is_quiet.get()


def in_own_session(verb: Callable[P, T]) -> Callable[P, T]:
    """Make the session of a verb's first argument, or of that argument's `spark`, the active one while the verb runs.

    Delta takes its writer's settings from the active session, and a process may have several sessions. The jobs of the
    verb are tagged as Hedgerow's own. Spark's errors are not logged: a verb tries expressions that Spark may refuse,
    and names those in its result. A job that fails for an unexpected reason, such as a damaged data file, ends the verb
    with an EngineError of one sentence."""

    @wraps(verb)
    def run(*args: P.args, **named: P.kwargs) -> T:
        owner: Any = args[0] if args else named["spark"]
        check_spark_version(getattr(owner, "spark", owner).version)
        with quiet(), _active(getattr(owner, "spark", owner)):
            try:
                return verb(*args, **named)
            except HedgerowError:
                raise
            except spark_errors() as error:
                raise EngineError(f"{verb.__name__} failed: {first_line(error)}") from error

    return run


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    if is_remote(spark):
        yield
        return
    jvm: Any = spark._jvm
    sessions, context = jvm.org.apache.spark.sql.classic.SparkSession, spark.sparkContext
    before, is_marked = sessions.getActiveSession(), OWN_QUERIES in context.getJobTags()
    sessions.setActiveSession(spark._jsparkSession)
    context.addJobTag(OWN_QUERIES)
    python = context.pythonExec
    if is_local(context) and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # Spark takes any python3, which may lack our modules
    try:
        yield
    finally:
        context.pythonExec = python
        if not is_marked:  # a verb may call another one
            context.removeJobTag(OWN_QUERIES)
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def configured(spark: SparkSession, **values: object) -> Iterator[None]:
    """Set SQL settings while the body runs; `codegen__maxFields` stands for spark.sql.codegen.maxFields."""
    settings = {"spark.sql." + key.replace("__", "."): str(value) for key, value in values.items()}
    with temporary_settings(spark, settings):
        yield


def engines_off(spark: SparkSession) -> AbstractContextManager[None]:
    """Make Spark itself evaluate queries while the body runs, not an engine that is loaded into it."""
    return temporary_settings(spark, ENGINES_OFF)


@contextmanager
def temporary_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Set these settings while the body runs."""
    before = {key: old for key, value in wanted.items() if (old := spark.conf.get(key, None)) != value}
    for key in before:
        spark.conf.set(key, wanted[key])
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
