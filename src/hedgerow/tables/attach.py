"""Installs the optimizer rule in a session, where it prunes single routed queries or, once attached, every query.

The rule is Java, because only the JVM's optimizer sees every query; `spark/start/jar` loads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.spark import wire
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.session import first_line, needs_jvm, spark_errors
from hedgerow.spark.wire import ScanReport
from hedgerow.tables.answers import Answers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def install(spark: SparkSession) -> None:
    """Make every query of the session skip files from now on."""
    needs_jvm(spark, "attach")
    remove(spark)
    _rule(spark).attached(True)


def remove(spark: SparkSession) -> None:
    """Remove the rule from the session; nothing happens if it is not attached."""
    needs_jvm(spark, "detach")
    # The extension attaches a session when Spark first asks for its rules; from now on it leaves this one alone.
    spark._jsparkSession.sessionState().optimizer().extendedOperatorOptimizationRules()
    _set_rules(spark, [rule for rule in _rules(spark) if not _is_ours(rule)])


def is_attached(spark: SparkSession) -> bool:
    """Return whether every query of the session may skip files."""
    return any(rule.isAttached() for rule in _our_rules(spark))


def routed(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the same query, made to skip files even if the session is not attached."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    _rule(spark)
    marked = gateway(spark).marked(frame._jdf)
    return frame if marked is None else Classic(marked, spark)


def last_query(spark: SparkSession) -> list[ScanReport]:
    """Return for each scan of a managed table in the session's last query the files that it opened."""
    return list(wire.read(rule_of(spark).last()))


def rule_of(spark: SparkSession) -> Any:
    """Return the session's rule, in the JVM."""
    needs_jvm(spark, "ask about queries")
    if rules := _our_rules(spark):
        return rules[0]
    raise HedgerowError("this session is not attached: call hedgerow.attach(spark) first")


def _rule(spark: SparkSession) -> Any:
    """Return the session's rule; install one if there is none."""
    from pyspark.java_gateway import ensure_callback_server_started

    if rules := _our_rules(spark):
        return rules[0]
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    try:
        rule = gateway(spark).rule(Answers(spark))
        _set_rules(spark, [*_rules(spark), rule])
    except spark_errors() as error:
        raise HedgerowError(f"this Spark cannot be attached to: {first_line(error)}") from error
    return rule


def _is_ours(rule: Any) -> bool:
    return re.fullmatch(r"hedgerow\w*\.PruningRule", str(rule.getClass().getName())) is not None


def _our_rules(spark: SparkSession) -> list[Any]:
    return list(filter(_is_ours, _rules(spark)))


def _rules(spark: SparkSession) -> list[Any]:
    rules = spark._jsparkSession.experimental().extraOptimizations()
    return [rules.apply(i) for i in range(rules.size())]


def _set_rules(spark: SparkSession, rules: list[Any]) -> None:
    jvm: Any = spark._jvm
    methods = spark._jsparkSession.experimental()
    getattr(methods, "extraOptimizations_$eq")(jvm.org.apache.spark.api.python.PythonUtils.toSeq(rules))
