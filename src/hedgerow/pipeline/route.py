"""route, attach, detach, last_query: make queries skip files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.errors import advise
from hedgerow.spark.optimizer.attach import install, remove, routed
from hedgerow.spark.optimizer.attach import last_query as last_query
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.session_settings import sentences
from hedgerow.spark.start.session import is_remote
from hedgerow.tables.connect_pruning import route_remotely

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def route(spark: SparkSession, sql: str) -> DataFrame:
    """Run one query as an attached session would: it opens only the files that matter.

    Over Spark Connect only a plain `SELECT ... FROM table WHERE column = literal AND ...` skips files.
    """
    return route_remotely(spark, sql) if is_remote(spark) else routed(spark, spark.sql(sql))


def attach(spark: SparkSession) -> None:
    """Make every query of this session skip files of managed tables, however it is written.

    `spark.conf.set("hedgerow.enabled", "false")` turns this off for a while, `detach` for good. A warning names each
    engine, extension, plugin and setting that limits skipping, and the line that lifts the limit.
    """
    install(spark)
    for sentence in sentences(settings(spark)):
        advise(sentence)


def detach(spark: SparkSession) -> None:
    """Let the session's queries read as if `attach` had never been called."""
    remove(spark)
