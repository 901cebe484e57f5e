"""Finds the jar with the optimizer rule, and loads it into the JVM of a session.

A wheel brings the jar. In a checkout it is built from `java/`, and built again when a source is newer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from hedgerow.core.errors import HedgerowError
from hedgerow.spark import judged, wire

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

JAR = Path(__file__).with_name("hedgerow.jar")
PACKAGE = "hedgerow"  # of the classes in the jar
# Stored with a table even at their defaults, which differ between machines and releases.
ALWAYS_STORED = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.timestampType",
)
_checkout = Path(__file__).resolve().parents[4]
_gateways: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_with_jar: WeakSet[SparkContext] = WeakSet()


def jar_path() -> Path:
    """Return the path of the jar; HedgerowError if there is none and none can be built."""
    builder = _checkout / "scripts" / "build_jar.py"
    if builder.exists() and is_stale():
        built = subprocess.run([sys.executable, str(builder)], capture_output=True, text=True)
        if built.returncode:
            raise HedgerowError(f"the jar cannot be built: {built.stderr.strip()}")
    if not JAR.exists():
        raise HedgerowError("this installation lacks hedgerow.jar: install Hedgerow from a wheel")
    return JAR


def is_stale() -> bool:
    """True if the jar has to be built: there is none, or a source is newer."""
    sources = (_checkout / "java").rglob("*.java")
    return not JAR.exists() or max(source.stat().st_mtime for source in sources) > JAR.stat().st_mtime


def conf_lines() -> dict[str, str]:
    """Return the settings that attach every session of a JVM, for spark-defaults.conf."""
    return {
        "spark.driver.extraClassPath": str(jar_path()),
        "spark.sql.extensions": "hedgerow.HedgerowExtensions",
        "spark.hedgerow.python": sys.executable,
    }


def lists() -> wire.Lists:
    """Return the first message to the JVM."""
    return wire.Lists(
        wire.VERSION,
        expressions=sorted(judged.EXPRESSIONS),
        replaced=sorted(judged.REPLACED_EXPRESSIONS),
        never_fail=sorted(judged.NEVER_FAIL),
        whole_tasks=sorted(judged.WHOLE_TASKS),
        repeatable=sorted(judged.REPEATABLE),
        always_stored=ALWAYS_STORED,
    )


def gateway(spark: SparkSession) -> Any:
    """Return the jar's `Gateway`, in the JVM of the session; the jar is loaded once into each JVM."""
    from hedgerow.spark.start.session import first_line, spark_errors

    context: Any = spark.sparkContext
    if context._gateway not in _gateways:
        try:
            _gateways[context._gateway] = _loaded(context._gateway)
        except spark_errors() as error:
            raise HedgerowError(f"this Spark cannot be attached to: {first_line(error)}") from error
    return _gateways[context._gateway]


def ship_jar(spark: SparkSession) -> None:
    """Give the jar to the tasks of a session; also in a local session they do not see the classes of `gateway`."""
    context: Any = spark.sparkContext
    if context not in _with_jar:
        context._jsc.addJar(str(jar_path()))
        _with_jar.add(context)


def _loaded(py4j: Any) -> Any:
    jvm = py4j.jvm
    urls, values = py4j.new_array(jvm.java.net.URL, 1), py4j.new_array(jvm.java.lang.Object, 1)
    urls[0] = jvm.java.io.File(str(jar_path())).toURI().toURL()
    values[0] = wire.write(lists())
    loader = jvm.java.net.URLClassLoader(urls, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    none = py4j.new_array(jvm.java.lang.Object, 0)
    extension = loader.loadClass(f"{PACKAGE}.HedgerowExtensions").getConstructors()[0].newInstance(none)
    return extension.load(f"{PACKAGE}.Gateway").getConstructors()[0].newInstance(values)
