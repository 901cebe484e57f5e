"""Apache DataFusion Comet beside Spark: the settings that load it, and how many scans were its own.

HEDGEROW_COMET_JAR     Comet's jar for the installed Spark, as Maven Central has it
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE = "HEDGEROW_COMET_JAR"


def on_class_path(jar: str) -> dict[str, str]:
    """Return the settings with which a JVM can load Comet, now or in a later session."""
    return {"spark.driver.extraClassPath": jar, "spark.executor.extraClassPath": jar}


def comet_settings(memory: str = "2g") -> dict[str, str]:
    """Return the settings that load Comet into a session; none if the environment names no jar."""
    jar = os.environ.get(VARIABLE)
    if not jar:
        return {}
    return {
        **on_class_path(jar),
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": memory,
    }


def scans_of(spark: SparkSession) -> dict[str, int]:
    """Return how many scans of files were Comet's, and how many Spark's, in the last queries that the JVM remembers."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    counts = {"comet": 0, "spark": 0}
    for i in range(executions.size()):
        plan = str(executions.apply(i).physicalPlanDescription()).split("\n\n\n")[0]  # details name each scan again
        comet = len(re.findall(r"\bComet(Native)?Scan\b", plan))
        counts["comet"] += comet
        counts["spark"] += len(re.findall(r"(?<!Comet)(?<!Native)\bScan parquet\b|\bFileScan parquet\b", plan))
    return counts
