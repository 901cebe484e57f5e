"""A Spark Connect server that runs with Hedgerow's extension: all its sessions skip files, and SQL tells which."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import is_remote, quiet, spark_errors
from hedgerow.spark.wire import ScanReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENABLED = "hedgerow.enabled"
_LAST_QUERY = "SELECT * FROM hedgerow_last_query()"
_LOGGER = logging.getLogger("hedgerow")
_known: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def skips_files(spark: SparkSession) -> bool:
    """True if this is a session of a Spark Connect server with the extension."""
    if spark not in _known:
        _known[spark] = is_remote(spark) and _has_function(spark)
    return _known[spark]


def _has_function(spark: SparkSession) -> bool:
    try:
        with quiet():
            return bool(spark.sql(_LAST_QUERY).columns)
    except spark_errors():
        return False


def enable(spark: SparkSession, is_on: bool) -> None:
    """Turn skipping on or off for a session; HedgerowError if its server lacks the extension."""
    _needs_extension(spark)
    if is_on:
        spark.conf.unset(_ENABLED)
        _LOGGER.info("the Spark Connect server has Hedgerow's extension: every query of its sessions skips files")
    else:
        spark.conf.set(_ENABLED, "false")


def last_query(spark: SparkSession) -> list[ScanReport]:
    """Return the files that each scan of a managed table in the session's last query opened."""
    _needs_extension(spark)
    return [ScanReport(**row.asDict()) for row in spark.sql(_LAST_QUERY).collect()]


def _needs_extension(spark: SparkSession) -> None:
    if not skips_files(spark):
        raise HedgerowError(
            "this Spark Connect server lacks Hedgerow's extension (`hedgerow doctor --conf` prints its settings): "
            "without it, read and route work, and all else takes a classic Spark session"
        )
