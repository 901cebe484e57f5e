"""route, attach, detach, last_query: make queries skip files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.errors import advise
from hedgerow.spark.optimizer import server
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.session_settings import sentences
from hedgerow.spark.start.session import is_remote
from hedgerow.tables import attach as session
from hedgerow.tables.connect_pruning import route_remotely

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hedgerow.spark.wire import ScanReport


def route(spark: SparkSession, sql: str) -> DataFrame:
    """Run one query as an attached session would: it opens only the files that matter.

    Over Spark Connect, where the server lacks the extension, only a plain `SELECT ... FROM table WHERE column = literal
    AND ...` skips files.
    """
    return route_remotely(spark, sql) if is_remote(spark) else session.routed(spark, spark.sql(sql))


def attach(spark: SparkSession) -> None:
    """Make every query of this session skip files of managed tables, however it is written.

    `spark.conf.set("hedgerow.enabled", "false")` turns this off for a while, `detach` for good. A Spark Connect server
    needs the extension; then its sessions are attached from the start. A warning names each engine, extension, plugin
    and setting that limits skipping, and the line that lifts the limit.
    """
    if is_remote(spark):
        server.enable(spark, True)
    else:
        session.install(spark)
    for sentence in sentences(settings(spark)):
        advise(sentence)


def detach(spark: SparkSession) -> None:
    """Let the session's queries read as if `attach` had never been called."""
    if is_remote(spark):
        server.enable(spark, False)
    else:
        session.remove(spark)


def last_query(spark: SparkSession) -> list[ScanReport]:
    """Return the files that each scan of a managed table in the session's last query opened; empty if it reads none."""
    return server.last_query(spark) if is_remote(spark) else session.last_query(spark)
