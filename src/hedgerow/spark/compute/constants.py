"""Computes constant expressions in Spark, and writes values as literals of Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hedgerow.core.predicates.sql_text import quote_string
from hedgerow.spark.start.session import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUOTED = ("string", "char", "varchar")
DATED = ("date", "timestamp", "timestamp_ntz")
_PLAIN = ("tinyint", "smallint", "int", "bigint", "decimal", "boolean")


def literal_of(type_: str, text: str) -> str | None:
    """Return the literal of a value, given as text; None for a type without literals."""
    kind = type_.partition("(")[0]
    if kind in QUOTED:
        return quote_string(text)
    if kind in DATED:
        return f"CAST({quote_string(text)} AS {kind})"
    if kind in ("float", "double"):
        return f"CAST({text} AS DOUBLE)"
    return text if kind in _PLAIN else None


def computed(spark: SparkSession, texts: Iterable[str]) -> dict[str, str]:
    """Return the values of constant expressions as literals, as far as Spark can compute them."""
    literals: dict[str, str] = {}
    for text in texts:
        try:
            frame = spark.sql(f"SELECT CAST(v AS STRING), TYPEOF(v) FROM (SELECT {text} AS v)")
            value, type_ = frame.first() or (None, "")
        except spark_errors():
            continue
        literal = None if value is None else literal_of(type_, value)
        if literal is not None:
            literals[text] = literal
    return literals
