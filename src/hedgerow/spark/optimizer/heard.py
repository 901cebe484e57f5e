"""Hears what a session's queries read of some tables: their conditions, columns, rows, bytes and seconds.

The JVM keeps the notes until they are taken, so that no query waits for Python. What Hedgerow's verbs run themselves is
not noted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hedgerow.spark.optimizer.rule import rule_class
from hedgerow.spark.start.session import OWN_QUERIES, needs_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN_AT_ONCE = 1000


class Heard:
    """Notes on the queries of one session that read files below some folders."""

    def __init__(self, spark: SparkSession) -> None:
        needs_jvm(spark, "log queries")
        self._spark = spark
        rule, jvm = rule_class(spark), spark._jvm
        values = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, 2)  # type: ignore[union-attr]
        values[0], values[1] = spark._jsparkSession, OWN_QUERIES
        loaded = rule.getClassLoader().loadClass(f"{rule.getName()}$Heard")
        self._notes: Any = loaded.getConstructors()[0].newInstance(values)

    def start(self, roots: list[str]) -> None:
        for root in roots:
            self._notes.watch(root)
        self._spark.sparkContext._jsc.sc().addSparkListener(self._notes)

    def stop(self) -> None:
        self._spark.sparkContext._jsc.sc().removeSparkListener(self._notes)

    def wait(self) -> None:
        """Waits until the notes on all queries that have ended are there."""
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def taken(self) -> tuple[list[dict[str, Any]], int]:
        """The notes since the last call, and the number of queries that were not noted: nobody took notes in time."""
        notes: list[dict[str, Any]] = []
        lost = 0
        while True:
            missed, *some = json.loads(self._notes.taken(_TAKEN_AT_ONCE))
            lost += missed
            notes += some
            if len(some) < _TAKEN_AT_ONCE:
                return notes, lost
