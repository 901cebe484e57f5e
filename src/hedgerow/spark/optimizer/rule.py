"""Compiles the optimizer rule's Java class once for each JVM, and reads a session's settings as the rule sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.spark.judged import as_json, kind_of_setting
from hedgerow.spark.start.delta_jars import loaded
from hedgerow.spark.start.session import first_line, is_remote, spark_errors
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA = re.compile(r"import \S+; // Delta\n|// --- Delta begins.*// --- Delta ends ---", re.DOTALL)
# Stored with a table even at their defaults, which differ between machines and releases.
_ALWAYS_STORED = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.timestampType",
)
_classes: dict[tuple[int, bool], Any] = {}


def rule_source() -> str:
    return files("hedgerow.spark.optimizer").joinpath("Pruning.java").read_text(encoding="utf-8")


def rule_class(spark: SparkSession) -> Any:
    """The class `Pruning`, in the JVM."""
    jvm: Any = spark._jvm
    key = id(spark.sparkContext._gateway), loaded(jvm)
    if key not in _classes:
        # Py4J caches methods by the name of their class, so each compiled class needs a name of its own.
        package = f"hedgerow.rule_{uuid4().hex}"
        source = rule_source() if key[1] else _DELTA.sub("", rule_source())
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook(source.replace("package hedgerow;", f"package {package};"))
            _classes[key] = compiler.getClassLoader().loadClass(f"{package}.Pruning")
        except spark_errors() as error:
            raise HedgerowError(f"this Spark cannot be attached to: {first_line(error)}") from error
    return _classes[key]


def new_rule(spark: SparkSession) -> Any:
    """A rule that is not connected to `Answers` yet."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    values = gateway.new_array(jvm.java.lang.Object, 1)
    values[0] = json.dumps({**json.loads(as_json()), "always": _ALWAYS_STORED})
    return rule_class(spark).getConstructors()[0].newInstance(values)


def version_of(frame: DataFrame) -> str | None:
    """Tells what the frame reads from what it would read after a change; None if it is not a plain table of files."""
    found = new_rule(frame.sparkSession).version(frame._jdf)
    return None if found is None else str(found)


def state_of(source: Source) -> str | None:
    """Tells the rows of a table from those that it would hold after a change; None if nothing tells them."""
    return source.version or version_of(source.frame)


def steady(frame: DataFrame, items: Sequence[Feature]) -> list[Feature]:
    """The items whose value depends on the row alone: `d = 'today'` asks the clock, `current_path()` the session."""
    from pyspark.sql import functions as f

    rule = new_rule(frame.sparkSession)
    dated = [item for item in items if rule.isDated(feature_text(item))]
    chosen = frame.select(*(f.expr(feature_text(item)).alias(str(n)) for n, item in enumerate(dated)))
    return [dated[int(n)] for n in json.loads(rule.steady(chosen._jdf))]


def settings(spark: SparkSession) -> dict[str, str]:
    """The settings that decide what expressions mean and what is read: some always, others if not at their default."""
    if is_remote(spark):
        values = {key: value for key, value in spark.conf.getAll.items() if kind_of_setting(key) != "harmless"}
        values |= {key: str(spark.conf.get(key)) for key in _ALWAYS_STORED}
        return {**values, "spark.version": ".".join(spark.version.split(".")[:2])}
    return dict(json.loads(new_rule(spark).settings(spark._jsparkSession.sessionState().conf())))
