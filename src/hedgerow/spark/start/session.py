"""Starts a Spark session, sets its settings for a while, and reads those that decide the meaning of predicates."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hedgerow.core.errors import EngineError, HedgerowError
from hedgerow.core.predicates.schema import Session
from hedgerow.spark.start.delta_jars import PACKAGES, delta_settings, fetching_alone, loaded
from hedgerow.spark.start.java import NO_JAVA, find_java
from hedgerow.spark.start.pyspark_version import check_pyspark, check_spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")
# The number of tasks that plan a query on a Delta table. Delta's default, 50, costs a local session about 0.15 s more.
_LOCAL_DELTA = {"spark.databricks.delta.snapshotPartitions": "2"}
OWN_QUERIES = "hedgerow"  # the tag of jobs that Hedgerow runs by itself
# Under these settings Spark parses a SQL text otherwise than we do.
OTHER_GRAMMAR = ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers")


def local_session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """Starts a local session on the Java of `find_java`; settings as `spark_sql_shuffle_partitions="8"`."""
    check_pyspark()
    return _started(memory, master, _dotted(settings))


def session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """Starts a local session that also reads Delta tables, if `spark/start/delta_jars` finds their jars.

    Without the jars, or if an earlier session started a JVM without them, the session works but cannot read Delta.
    """
    check_pyspark()
    from pyspark import SparkContext

    given = {**(_LOCAL_DELTA if master.startswith("local") else {}), **_dotted(settings)}
    is_too_late = SparkContext._jvm is not None and not loaded(SparkContext._jvm)
    with fetching_alone():
        delta = {} if is_too_late else delta_settings(given, fetch=True)
        if PACKAGES in delta:
            try:
                return _started(memory, master, {**given, **delta})
            except spark_errors():
                delta = {}  # Maven cannot be reached
    return _started(memory, master, {**given, **delta})


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {key if "." in key else key.replace("_", "."): value for key, value in settings.items()}


def _started(memory: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    home = find_java()
    if home is None:
        raise HedgerowError(NO_JAVA)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the same packages
    from pyspark.sql import SparkSession

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
    return builder.getOrCreate()


def is_remote(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which gives access to queries and their results but to no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def needs_jvm(spark: SparkSession, task: str) -> None:
    """HedgerowError if the session is one of Spark Connect; `task` is a verb for the message."""
    if is_remote(spark):
        raise HedgerowError(f"to {task} takes a classic Spark session; over Spark Connect, read and route work")


def check_grammar(spark: SparkSession) -> None:
    """HedgerowError if Spark parses SQL texts in another way than we do."""
    if any(str(spark.conf.get(key)).lower() == "true" for key in OTHER_GRAMMAR):
        names = " and ".join(OTHER_GRAMMAR)
        raise HedgerowError(f"{names} change how Spark reads SQL texts: unset both to learn and to write")


def meaning(spark: SparkSession) -> Session:
    """The settings that decide the meaning of literals and casts in this session."""
    return Session(zone=spark.conf.get("spark.sql.session.timeZone"))


def spark_errors() -> tuple[type[Exception], ...]:
    """The exceptions that Spark raises, from Python or from the JVM, and ours that stand for them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, EngineError


def first_line(error: BaseException) -> str:
    """The message of an error in one line: of Java's exception if there is one."""
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    lines = [line.strip() for line in str(error if java is None else java.toString()).splitlines() if line.strip()]
    if "Traceback (most recent call last):" in lines:
        return lines[-1]  # a Python function failed: its exception is at the end
    return lines[0] if lines else type(error).__name__


_ERROR_LOGS = "SQLQueryContextLogger", "DataFrameQueryContextLogger"
_is_quiet = ContextVar("_is_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """While the body runs, PySpark does not log each error of Spark, which it does where it makes the exception.

    Whoever catches the exception says what is to be said."""
    from pyspark.logger import PySparkLogger

    for name in _ERROR_LOGS:
        PySparkLogger.getLogger(name).addFilter(_is_wanted)  # added once, however often
    before = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def _is_wanted(record: logging.LogRecord) -> bool:
    return not _is_quiet.get()


def in_own_session(verb: Callable[P, T]) -> Callable[P, T]:
    """While the verb runs, the session of its first argument, or that argument's `spark`, is the active one.

    Delta takes its writer's settings from the active session, whichever session a frame is of. With several sessions
    in one process, that may be another one. The jobs of the verb are marked as Hedgerow's own, and errors of Spark are
    not logged: a verb finds by trying what Spark can evaluate, and says in a sentence what it could not do. A job that
    fails for an unforeseen reason, such as a damaged data file, ends the verb in one sentence."""

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
    try:
        yield
    finally:
        if not is_marked:  # a verb may call another one
            context.removeJobTag(OWN_QUERIES)
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@contextmanager
def configured(spark: SparkSession, **values: object) -> Iterator[None]:
    """Sets SQL settings while the body runs; `codegen__maxFields` stands for spark.sql.codegen.maxFields."""
    with temporary_settings(
        spark, {"spark.sql." + key.replace("__", "."): str(value) for key, value in values.items()}
    ):
        yield


@contextmanager
def temporary_settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets these settings while the body runs."""
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
