"""Install the optimizer rule in a session, and take it out again.

The rule is Java, for only the JVM's optimizer sees every query; Spark brings a compiler (Janino), so no jar is needed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.delta import has_delta
from hedgerow.spark.session import first_line, needs_jvm, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = re.compile(r"import \S+; // Delta\n|// --- Delta begins.*// --- Delta ends ---", re.DOTALL)
_OURS = re.compile(r"hedgerow\.rule_\w+\.Pruning")


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
        # Py4J remembers methods by the name of their class, so no two of ours may have the same.
        package = f"hedgerow.rule_{uuid4().hex}"
        source = files("hedgerow.spark").joinpath("Pruning.java").read_text(encoding="utf-8")
        if not has_delta(spark):
            source = _DELTA.sub("", source)
        compiler.cook(source.replace("package hedgerow;", f"package {package};"))
        nothing = context._gateway.new_array(jvm.java.lang.Object, 0)
        rule = compiler.getClassLoader().loadClass(f"{package}.Pruning").getConstructors()[0].newInstance(nothing)
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
    return _OURS.fullmatch(str(rule.getClass().getName())) is not None


def _rules(spark: SparkSession) -> list[Any]:
    found = spark._jsparkSession.experimental().extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


def _set_rules(spark: SparkSession, rules: list[Any]) -> None:
    jvm: Any = spark._jvm
    methods = spark._jsparkSession.experimental()
    getattr(methods, "extraOptimizations_$eq")(jvm.org.apache.spark.api.python.PythonUtils.toSeq(rules))
