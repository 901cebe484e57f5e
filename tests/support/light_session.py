"""Makes a local session cheaper, for tests that run each query once on a few rows."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from pyspark.sql import SparkSession

# Each piece of code runs a few times only: it is not worth a compiler's time.
LIGHT = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.files.minPartitionNum": "1",  # a task costs more than reading a small table
    "spark.sql.ui.explainMode": "simple",
    "spark.databricks.delta.snapshotPartitions": "1",
}
# For the few queries over a hundred thousand rows and more, code is worth compiling.
COMPILED = {"codegen__wholeStage": "true", "codegen__factoryMode": "FALLBACK"}
# Hadoop's settings of services that local files do not need. Spark copies all settings for each scan and each file.
_SERVICES = (
    *("yarn.", "dfs.", "ipc.", "ha.", "fs.s3a.", "fs.azure.", "fs.ftp.", "hadoop.http.", "hadoop.registry.", "net."),
    *("mapreduce.jobhistory.", "mapreduce.map.", "mapreduce.reduce.", "mapreduce.shuffle.", "mapreduce.client."),
)


def keep_java_names() -> None:
    """Make Py4J look up each package and class once.

    It asks the JVM for each part of `a.b.C` each time, and the JVM then looks for a class `a` in some 300 jars."""
    for kind in (JVMView, JavaPackage):
        _keep(kind)


def _keep(kind: type) -> None:
    look_up = kind.__getattr__  # type: ignore[attr-defined]

    def kept(self: Any, name: str) -> Any:
        found = look_up(self, name)
        # A name with a capital letter may be a class of a jar that is loaded later.
        if isinstance(found, JavaClass) or (isinstance(found, JavaPackage) and name.islower()):
            self.__dict__[name] = found
        return found

    kind.__getattr__ = kept  # type: ignore[attr-defined]


def drop_service_settings(spark: SparkSession) -> None:
    """Remove Hadoop's settings of services from the session."""
    jvm: Any = spark._jvm
    jvm.java.lang.Class.forName("org.apache.hadoop.mapred.JobConf")  # it adds settings when it is loaded
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    for prefix in _SERVICES:
        for name in list(settings.getPropsWithPrefix(prefix)):
            settings.unset(prefix + name)
