"""Install the optimizer rule in a session, and take it out again.

The rule is Java, for only the JVM's optimizer sees every query; Spark brings a compiler (Janino), so no jar is needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.session import first_line, needs_jvm, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RULE = "hedgerow.Pruning"


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one scan of a managed table opens; `seconds` is what the decision took."""

    table: str
    files: int
    files_opened: int
    bytes: int
    bytes_opened: int
    seconds: float


def install(spark: SparkSession, answers: Any) -> None:
    """From now on each query of the session asks `answers` which files it can skip."""
    from pyspark.java_gateway import ensure_callback_server_started

    needs_jvm(spark, "attach")
    remove(spark)
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    jvm: Any = spark._jvm
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(files("hedgerow.spark").joinpath("Pruning.java").read_text(encoding="utf-8"))
        nothing = context._gateway.new_array(jvm.java.lang.Object, 0)
        rule = compiler.getClassLoader().loadClass(_RULE).getConstructors()[0].newInstance(nothing)
        rule.answeredBy(answers)
        _set_rules(spark, [*_rules(spark), rule])
    except spark_errors() as error:
        raise HedgerowError(f"this Spark cannot be attached to: {first_line(error)}") from error


def remove(spark: SparkSession) -> None:
    """Queries read as ever; nothing happens if the session is not attached."""
    needs_jvm(spark, "detach")
    _set_rules(spark, [rule for rule in _rules(spark) if not _is_ours(rule)])


def last_query(spark: SparkSession) -> list[ScanReport]:
    """What each scan of a managed table in the session's last query opened; empty if there was none."""
    return [ScanReport(**told) for told in json.loads(rule_of(spark).last())]


def rule_of(spark: SparkSession) -> Any:
    """The rule, in the JVM."""
    needs_jvm(spark, "ask about queries")
    found = [rule for rule in _rules(spark) if _is_ours(rule)]
    if not found:
        raise HedgerowError("this session is not attached: call hedgerow.attach(spark) first")
    return found[0]


def _is_ours(rule: Any) -> bool:
    return str(rule.getClass().getName()) == _RULE


def _rules(spark: SparkSession) -> list[Any]:
    found = spark._jsparkSession.experimental().extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


def _set_rules(spark: SparkSession, rules: list[Any]) -> None:
    jvm: Any = spark._jvm
    methods = spark._jsparkSession.experimental()
    getattr(methods, "extraOptimizations_$eq")(jvm.org.apache.spark.api.python.PythonUtils.toSeq(rules))
