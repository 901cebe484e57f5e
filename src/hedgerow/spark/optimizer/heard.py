"""Hears what a session's queries read of some tables: their conditions, columns, rows, bytes and seconds.

The JVM keeps the notes until they are taken, so that no query waits for Python.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hedgerow.spark.optimizer.rule import rule_class
from hedgerow.spark.start.session import needs_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN_AT_ONCE = 1000


class Heard:
    """Notes on the queries of one session that read files below some folders."""

    def __init__(self, spark: SparkSession) -> None:
        needs_jvm(spark, "log queries")
        self._spark = spark
        rule = rule_class(spark)
        self._notes: Any = (
            rule.getClassLoader()
            .loadClass(f"{rule.getName()}$Heard")
            .getConstructors()[0]
            .newInstance(
                spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 0)  # type: ignore[union-attr]
            )
        )

    def start(self, roots: list[str]) -> None:
        for root in roots:
            self._notes.watch(root)
        self._spark._jsparkSession.listenerManager().register(self._notes)

    def stop(self) -> None:
        self._spark._jsparkSession.listenerManager().unregister(self._notes)

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
