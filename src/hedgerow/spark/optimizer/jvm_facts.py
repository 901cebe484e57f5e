"""Reads from the JVM the version of a table, the settings of a session, and which expressions are steady."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedgerow.core.predicates.nodes import Feature
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.spark import wire
from hedgerow.spark.judged import is_harmless_option
from hedgerow.spark.session_settings import relevant_settings
from hedgerow.spark.start.jar import ALWAYS_STORED, gateway
from hedgerow.spark.start.session import is_remote
from hedgerow.spark.storage.source import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A date or timestamp in SQL that names no day: Spark's parser asks the clock.
_UNDATED = re.compile(r"\b(date|timestamp(_ntz|_ltz)?)\s*['\"]\s*(?![+-]?\d{4,}(-|\s*['\"]))", re.IGNORECASE | re.ASCII)


def version_of(frame: DataFrame) -> str | None:
    """Return a text that changes with the rows that the frame reads; None if it is not a plain table of files."""
    answer = gateway(frame.sparkSession).version(frame._jdf)
    if answer is None:
        return None
    table: wire.TableVersion = wire.read(answer)
    return table.version if all(map(is_harmless_option, table.options)) else None


def state_of(source: Source) -> str | None:
    """Return a text that changes with the rows of a table; None if there is none."""
    return source.version or version_of(source.frame)


def steady(frame: DataFrame, items: Sequence[Feature]) -> list[Feature]:
    """Return the items whose value depends only on the row: not on the clock, as `d = 'today'`, or on the session."""
    from pyspark.sql import functions as f

    dated = list(filter(is_dated, items))
    chosen = frame.select(*(f.expr(feature_text(item)).alias(str(n)) for n, item in enumerate(dated)))
    return [dated[int(n)] for n in json.loads(gateway(frame.sparkSession).steady(chosen._jdf))]


def is_dated(item: Feature) -> bool:
    """True if all dates and timestamps that the item's text spells out name a day."""
    return _UNDATED.search(feature_text(item)) is None


def settings(spark: SparkSession) -> dict[str, str]:
    """Return the settings that decide what expressions mean and what is read: some always, others unless at default."""
    if is_remote(spark):
        values = relevant_settings(dict(spark.conf.getAll))
        values |= {key: str(spark.conf.get(key)) for key in ALWAYS_STORED}
        return {**values, "spark.version": ".".join(spark.version.split(".")[:2])}
    return relevant_settings(json.loads(gateway(spark).settings(spark._jsparkSession)))
