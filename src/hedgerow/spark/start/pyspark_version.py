"""Checks that PySpark is installed and new enough: Hedgerow does not install it, because a cluster brings its own."""

from __future__ import annotations

from hedgerow.core.errors import HedgerowError

OLDEST = (4, 0)  # brought DataFrame.toArrow


def check_pyspark() -> None:
    """Raise HedgerowError if PySpark is missing or too old."""
    try:
        import pyspark
    except ImportError as error:
        raise HedgerowError("PySpark is not installed: run pip install 'hedgerow[spark]'") from error
    check_spark_version(pyspark.__version__)


def check_spark_version(found: str) -> None:
    """Raise HedgerowError if this version of Spark is too old.

    >>> check_spark_version("4.1.4")
    >>> check_spark_version("3.5.1")
    Traceback (most recent call last):
    hedgerow.core.errors.HedgerowError: Spark 3.5.1 is too old: Hedgerow needs Spark 4.0 or newer
    """
    major, minor = (int(part) for part in found.split(".")[:2])
    if (major, minor) < OLDEST:
        raise HedgerowError(f"Spark {found} is too old: Hedgerow needs Spark {OLDEST[0]}.{OLDEST[1]} or newer")
