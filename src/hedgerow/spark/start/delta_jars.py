"""Where Delta's jars are: named by the environment, already in the local cache, or on Maven Central.

HEDGEROW_DELTA_JARS     jars, or folders of jars, as in PATH: nothing else is asked
the Ivy cache           what an earlier session fetched: no network is needed
Maven Central           by `spark.jars.packages`, once
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
# Of all that Maven fetches for Delta, what Spark does not bring itself.
_PARTS = ("io.delta_delta-", "io.unitycatalog_", "org.locationtech.jts_")


def package() -> str:
    """Delta for the Spark that is installed, as Maven calls it."""
    import pyspark

    return f"io.delta:delta-spark_{'.'.join(pyspark.__version__.split('.')[:2])}_2.13:{DELTA}"


def delta_settings(given: Mapping[str, str], fetch: bool) -> dict[str, str]:
    """What to add to a session's settings so that it reads Delta tables; nothing if there is no jar to be had.

    Args:
        given: the user's own settings; what they say of jars and extensions stays.
        fetch: whether Maven may be asked.
    """
    jars = named_jars() if os.environ.get(VARIABLE) else cached_jars(given.get(_IVY))
    if not jars and not (fetch and _wanted()):
        return {}
    found = {"spark.jars": ",".join(jars)} if jars else {PACKAGES: package()}
    found[_EXTENSIONS] = "io.delta.sql.DeltaSparkSessionExtension"
    joined = {key: ",".join(filter(None, (given.get(key), value))) for key, value in found.items()}
    return {**joined, _CATALOG: given.get(_CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog")}


def named_jars() -> list[str]:
    """The jars that the environment names."""
    found: list[str] = []
    for part in os.environ[VARIABLE].split(os.pathsep):
        found += sorted(map(str, Path(part).glob("*.jar"))) if Path(part).is_dir() else [part]
    missing = [jar for jar in found if not Path(jar).is_file()]
    if missing or not found:
        raise HedgerowError(f"{VARIABLE} names {missing[0] if missing else os.environ[VARIABLE]}, where no jar is")
    return found


def cached_jars(ivy: str | None = None) -> list[str]:
    """What an earlier session fetched from Maven, or nothing."""
    main = f"{package().replace(':', '_', 1).replace(':', '-')}.jar"
    for folder in [ivy] if ivy else sorted(glob.glob(os.path.expanduser("~/.ivy2*")), reverse=True):
        found = {jar.name: str(jar) for jar in sorted((Path(folder) / "jars").glob("*.jar"))}
        if main in found:
            others = [n for n in found if n.startswith(_PARTS) and not n.startswith("io.delta_delta-spark")]
            return [found[n] for n in (main, *others) if not n.startswith("io.delta_") or n.endswith(f"-{DELTA}.jar")]
    return []


def loaded(jvm: Any) -> bool:
    """Whether a JVM has Delta's classes; it gets them when it starts, or never."""
    from py4j.java_gateway import JavaClass

    return isinstance(jvm.org.apache.spark.sql.delta.DeltaLog, JavaClass)


def _wanted() -> bool:
    """Whether the extra is installed: nobody else waits for a download."""
    return importlib.util.find_spec("delta") is not None
