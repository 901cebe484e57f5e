"""stable: let conditions with a function of the user's own divide rows and skip files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.stable_functions import declare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stable(name: str, version: str, spark: SparkSession | None = None) -> None:
    """Declare that a function of the session always returns the same value for the same arguments.

    Conditions that call it may then divide rows, and skip files in every session that declares it in the same version.
    The function has to be registered under this name in the session: in Python, Java, Scala, or as a temporary function
    in SQL. A function that is registered anew needs a new declaration.

    Args:
        name: the name by which queries call it.
        version: a text of your own. Give another one whenever the function may return another value.
        spark: the session; by default the active one.
    """
    from pyspark.sql import SparkSession

    if not isinstance(version, str) or not version:
        raise HedgerowError(f"the version of a function is a text such as '1', not {version!r}")
    declare(spark or SparkSession.active(), name, version)
