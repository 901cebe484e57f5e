"""Finds Delta's jars: in the environment variable, in the local cache, or on Maven Central.

HEDGEROW_DELTA_JARS     jars, or folders of jars, as in PATH; if it is set, no other place is searched
the Ivy cache           jars that an earlier session fetched: no network is needed
Maven Central           fetched once, by `spark.jars.packages`
"""

from __future__ import annotations

import glob
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.core.errors import HedgerowError

VARIABLE = "HEDGEROW_DELTA_JARS"
PACKAGES = "spark.jars.packages"
DELTA = "4.4.0"
NO_DELTA = (
    "this session cannot read Delta tables, for it has no Delta jar: start it with hedgerow.session(), before "
    f"any other session of the process, where Maven Central can be reached or {VARIABLE} names a folder with its jars"
)
_EXTENSIONS, _CATALOG, _IVY = "spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.jars.ivy"
# The jars that Maven fetches for Delta and that Spark does not bring itself.
_JAR_PREFIXES = ("io.delta_delta-", "io.unitycatalog_", "org.locationtech.jts_")


def package() -> str:
    """Return Maven's name of the Delta package that fits the installed Spark."""
    import pyspark

    return f"io.delta:delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_2.13:{DELTA}"


def delta_settings(given: Mapping[str, str], fetch: bool) -> dict[str, str]:
    """Return the settings that make a session read Delta tables; none if no jar can be found.

    Args:
        given: the user's own settings; their jars and extensions are kept.
        fetch: whether jars may be downloaded from Maven.
    """
    jars = named_jars() if os.environ.get(VARIABLE) else cached_jars(given.get(_IVY))
    if not jars and not (fetch and _has_delta_extra()):
        return {}
    added = {"spark.jars": ",".join(jars)} if jars else {PACKAGES: package()}
    added[_EXTENSIONS] = "io.delta.sql.DeltaSparkSessionExtension"
    joined = {key: ",".join(filter(None, (given.get(key), value))) for key, value in added.items()}
    return {**joined, _CATALOG: given.get(_CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog")}


def named_jars() -> list[str]:
    """Return the jars that the environment names."""
    jars: list[str] = []
    for part in os.environ[VARIABLE].split(os.pathsep):
        jars += sorted(map(str, Path(part).glob("*.jar"))) if Path(part).is_dir() else [part]
    missing = [jar for jar in jars if not Path(jar).is_file()]
    if missing or not jars:
        raise HedgerowError(f"{VARIABLE} names {missing[0] if missing else os.environ[VARIABLE]}, where no jar is")
    return jars


def cached_jars(ivy: str | None = None) -> list[str]:
    """Return the jars that an earlier session fetched from Maven; empty without Delta's main jar."""
    main = f"{package().replace(':', '_', 1).replace(':', '-')}.jar"
    for folder in [ivy] if ivy else sorted(glob.glob(os.path.expanduser("~/.ivy2*")), reverse=True):
        jars = {jar.name: str(jar) for jar in sorted((Path(folder) / "jars").glob("*.jar"))}
        if main in jars:
            others = [n for n in jars if n.startswith(_JAR_PREFIXES) and not n.startswith("io.delta_delta-spark")]
            return [jars[n] for n in (main, *others) if not n.startswith("io.delta_") or n.endswith(f"-{DELTA}.jar")]
    return []


def loaded(jvm: Any) -> bool:
    """True if a JVM has Delta's classes; it can only get them when it starts."""
    from py4j.java_gateway import JavaClass

    return isinstance(jvm.org.apache.spark.sql.delta.DeltaLog, JavaClass)


def _has_delta_extra() -> bool:
    """True if the extra `delta` is installed; without it nothing is downloaded."""
    return importlib.util.find_spec("delta") is not None
