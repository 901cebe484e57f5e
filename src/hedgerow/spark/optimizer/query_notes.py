"""Takes notes on what a session's queries read of some tables: conditions, columns, rows, bytes and seconds.

The JVM keeps the notes until they are taken, so that no query waits for Python. Queries of Hedgerow's own verbs are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.spark import wire
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.session import needs_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TAKEN_AT_ONCE = 1000


class QueryListener:
    """Notes on the queries of one session that read files below some folders."""

    def __init__(self, spark: SparkSession) -> None:
        needs_jvm(spark, "log queries")
        self._spark = spark
        self._java: Any = gateway(spark).listener(spark._jsparkSession)

    def start(self, roots: list[str]) -> None:
        for root in roots:
            self._java.watch(root)
        self._spark.sparkContext._jsc.sc().addSparkListener(self._java)

    def stop(self) -> None:
        self._spark.sparkContext._jsc.sc().removeSparkListener(self._java)

    def wait(self) -> None:
        """Wait until the notes on all queries that have ended are there."""
        self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()

    def taken(self) -> tuple[list[wire.QueryNote], int]:
        """Return the notes since the last call, and the number of queries that were not noted, for lack of room."""
        notes: list[wire.QueryNote] = []
        lost = 0
        while True:
            some: wire.QueryNotes = wire.read(self._java.taken(_TAKEN_AT_ONCE))
            lost += some.lost
            notes += some.notes
            if len(some.notes) < _TAKEN_AT_ONCE:
                return notes, lost
