"""A Spark session for people who have none, and what of a session decides what predicates mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.schema import Session
from hedgerow.spark.start.delta_jars import PACKAGES, delta_settings, loaded
from hedgerow.spark.start.java import NO_JAVA, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Under these a text means something else to Spark than to our reader.
_OTHER_GRAMMAR = ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers")


def local_session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """A local session, with a Java found by ourselves; settings as `spark_sql_shuffle_partitions="8"`."""
    return _started(memory, master, _dotted(settings))


def session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """A local session that reads Delta tables too, if their jars can be had: `spark/jars` says where they come from.

    Without them, or where an earlier session's JVM runs without them, it is a session like any other, and what needs
    Delta says so.
    """
    from pyspark import SparkContext

    given = _dotted(settings)
    late = SparkContext._jvm is not None and not loaded(SparkContext._jvm)
    delta = {} if late else delta_settings(given, fetch=True)
    try:
        return _started(memory, master, {**given, **delta})
    except spark_errors():
        if PACKAGES not in delta:
            raise
    return _started(memory, master, given)  # Maven is out of reach


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {key if "." in key else key.replace("_", "."): value for key, value in settings.items()}


def _started(memory: str, master: str, settings: Mapping[str, str]) -> SparkSession:
    home = find_java()
    if home is None:
        raise HedgerowError(NO_JAVA)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the packages that we have
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
    """A Spark Connect session: no JVM at hand, only queries and their results."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def needs_jvm(spark: SparkSession, what: str) -> None:
    if is_remote(spark):
        raise HedgerowError(f"to {what} takes a classic Spark session; over Spark Connect, read and route work")


def same_grammar(spark: SparkSession) -> bool:
    """Whether Spark reads SQL texts as we do."""
    return not any(str(spark.conf.get(key)).lower() == "true" for key in _OTHER_GRAMMAR)


def meaning(spark: SparkSession) -> Session:
    """What literals and casts mean in this session."""
    return Session(zone=spark.conf.get("spark.sql.session.timeZone"))


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises, on either side of the bridge."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def first_line(error: BaseException) -> str:
    """What went wrong at the bottom of it, in one line."""
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    told = [line.strip() for line in str(error if java is None else java.toString()).splitlines() if line.strip()]
    if "Traceback (most recent call last):" in told:
        return told[-1]  # of a Python function: the exception is at the end
    return told[0] if told else type(error).__name__


@contextmanager
def configured(spark: SparkSession, **values: object) -> Iterator[None]:
    """For a while the session has these SQL settings; names as `codegen__hugeMethodLimit` for spark.sql.codegen..."""
    with having(spark, {"spark.sql." + key.replace("__", "."): str(value) for key, value in values.items()}):
        yield


@contextmanager
def having(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """For a while the session has these settings."""
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
