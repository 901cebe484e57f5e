"""The optimizer rule of a session: for one query that asks for it, or, once attached, for every query.

The rule is Java, for only the JVM's optimizer sees every query; Spark brings a compiler (Janino), so no jar is needed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.optimizer.rule import new_rule
from hedgerow.spark.start.session import first_line, needs_jvm, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = re.compile(r"hedgerow\.rule_\w+\.Pruning")
# Who answers the rule stands above this package, so it is found by its name.
_ANSWERS = "hedgerow.tables.session_pruning", "Answers"


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What one scan of a managed table opens; `seconds` is what the decision took.

    `reason`: why the index was not used, None if it was.
    """

    table: str
    files: int
    files_opened: int
    bytes: int
    bytes_opened: int
    seconds: float
    reason: str | None = None


def install(spark: SparkSession) -> None:
    """From now on every query of the session skips files."""
    needs_jvm(spark, "attach")
    remove(spark)
    _rule(spark).attached(True)


def remove(spark: SparkSession) -> None:
    """Queries read as ever; nothing happens if the session is not attached."""
    needs_jvm(spark, "detach")
    _set_rules(spark, [rule for rule in _rules(spark) if not _is_ours(rule)])


def routed(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The same query, which skips files whether or not the session is attached."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    rule, query = _rule(spark), frame._jdf.queryExecution()
    # What the session has cached stays cached: a marked relation would no longer be known as the cached one.
    plan = rule.marked(query.withCachedData())
    if plan is None:
        return frame
    jvm: Any = spark._jvm
    return Classic(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def last_query(spark: SparkSession) -> list[ScanReport]:
    """What each scan of a managed table in the session's last query opened; empty if there was none."""
    return [ScanReport(**told) for told in json.loads(rule_of(spark).last())]


def rule_of(spark: SparkSession) -> Any:
    """The session's rule, in the JVM."""
    needs_jvm(spark, "ask about queries")
    found = [rule for rule in _rules(spark) if _is_ours(rule)]
    if not found:
        raise HedgerowError("this session is not attached: call hedgerow.attach(spark) first")
    return found[0]


def _rule(spark: SparkSession) -> Any:
    """The session's rule, which is installed if there is none."""
    from pyspark.java_gateway import ensure_callback_server_started

    found = [rule for rule in _rules(spark) if _is_ours(rule)]
    if found:
        return found[0]
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    module, name = _ANSWERS
    try:
        rule = new_rule(spark)
        rule.answeredBy(getattr(import_module(module), name)(spark))
        _set_rules(spark, [*_rules(spark), rule])
    except spark_errors() as error:
        raise HedgerowError(f"this Spark cannot be attached to: {first_line(error)}") from error
    return rule


def _is_ours(rule: Any) -> bool:
    return _OURS.fullmatch(str(rule.getClass().getName())) is not None


def _rules(spark: SparkSession) -> list[Any]:
    found = spark._jsparkSession.experimental().extraOptimizations()
    return [found.apply(i) for i in range(found.size())]


def _set_rules(spark: SparkSession, rules: list[Any]) -> None:
    jvm: Any = spark._jvm
    methods = spark._jsparkSession.experimental()
    getattr(methods, "extraOptimizations_$eq")(jvm.org.apache.spark.api.python.PythonUtils.toSeq(rules))
