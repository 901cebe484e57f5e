"""A Spark session for people who have none, and what of a session decides what predicates mean."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hedgerow.core.bind import Session
from hedgerow.core.errors import HedgerowError
from hedgerow.spark.java import NO_JAVA, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_session(memory: str = "4g", master: str = "local[*]", **settings: str) -> SparkSession:
    """A local session, with a Java found by ourselves; settings as `spark_sql_shuffle_partitions="8"`."""
    home = find_java()
    if home is None:
        raise HedgerowError(NO_JAVA)
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need the packages that we have
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("hedgerow")
    defaults = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    for key, value in {**defaults, **{k.replace("_", "."): v for k, v in settings.items()}}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def meaning(spark: SparkSession) -> Session:
    """What literals and casts mean in this session."""
    return Session(zone=spark.conf.get("spark.sql.session.timeZone"))
