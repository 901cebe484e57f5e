"""Write parsed SQL as text; a TIME stays a TIME, while sqlglot's own Spark dialect makes it a TIMESTAMP."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

SPARK = "spark"


class _SparkWithTime(Spark):
    class Generator(Spark.Generator):  # type: ignore[valid-type, misc]  # made by a metaclass
        TYPE_MAPPING: ClassVar = {k: v for k, v in Spark.Generator.TYPE_MAPPING.items() if k != exp.DataType.Type.TIME}
        SUPPORTS_TEMPORAL_PRECISION = True  # without this, TIME(3) becomes TIME


def to_sql(node: exp.Expr, dialect: str = SPARK, **options: Any) -> str:
    """Return the SQL text of a parsed query or a part of it.

    >>> import sqlglot
    >>> to_sql(sqlglot.parse_one("SELECT TIME '05:00:00' < CAST(t AS TIME(3))", read="spark"))
    "SELECT CAST('05:00:00' AS TIME) < CAST(t AS TIME(3))"
    """
    return node.sql(_SparkWithTime if dialect == SPARK else dialect, **options)
