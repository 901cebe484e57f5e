"""Users' functions that are declared stable: equal arguments give equal values, as long as the version is the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.schema import Session
from hedgerow.core.predicates.types import Type
from hedgerow.spark.start.jar import gateway
from hedgerow.spark.start.session import is_remote, needs_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def declare(spark: SparkSession, name: str, version: str) -> None:
    """Declare the function that the session has under this name, until another takes its name."""
    needs_jvm(spark, "declare a function")
    if not gateway(spark).declare(spark._jsparkSession, name, version):
        raise HedgerowError(f"there is no function {name} that was registered in this session under a name of its own")


def stable_functions(spark: SparkSession) -> dict[str, Type]:
    """Return the types of the values that the session's declared functions return, by name in lower case."""
    found = {} if is_remote(spark) else json.loads(gateway(spark).stable(spark._jsparkSession))
    return {name: Type.parse(returned) for name, returned in found.items()}


def meaning(spark: SparkSession) -> Session:
    """Return what decides the meaning of literals, casts and functions in this session."""
    return Session(spark.conf.get("spark.sql.session.timeZone"), stable_functions(spark))
