"""How much of an index holds in a session: all of it, what means the same in every session, or nothing.

same settings as when the table was written       everything
another meaning of expressions (ANSI mode, zone)  bounds of columns, comparisons with literals, LIKE over strings
another way of reading, or a setting not judged   nothing: open every file
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from hedgerow.core.index.block_index import BlockIndex, View
from hedgerow.core.index.session_safe import steady_index
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.judged import kind_of_setting
from hedgerow.spark.start.session import having

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = "spark.version"
# What runs the query; and letter case, for names are compared letter by letter where Spark does so.
_AS_MEANING = (_VERSION, "java.version", "spark.sql.caseSensitive")


def difference(written: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, str] | None:
    """The most serious kind of setting that differs, `meaning` or `reading`, and a sentence that names one such."""
    differing = sorted(key for key in {*written, *now} if written.get(key) != now.get(key))
    if _VERSION not in written:  # Hedgerow noted few settings then
        differing = sorted({_VERSION, *(key for key in differing if key in now)})
    kinds = {key: "meaning" if key in _AS_MEANING else kind_of_setting(key) for key in differing}
    for key, kind in kinds.items():
        if kind not in ("meaning", "harmless"):
            return "reading", f"the setting {key} is not what it was when the table was written"
    changed = [key for key, kind in kinds.items() if kind == "meaning"]
    return ("meaning", f"{changed[0]} is not what it was when the table was written") if changed else None


def fitting_index(index: BlockIndex, schema: Mapping[str, Type], differs: str | None) -> BlockIndex:
    """What of the index holds where settings of that kind differ; None: where none does."""
    if differs is None:
        return index
    return steady_index(index, schema) if differs == "meaning" else _silent(index)


def _silent(index: BlockIndex) -> BlockIndex:
    """The same blocks, of which nothing is known but how many rows they have."""
    return BlockIndex(tuple(View(Stats(v.stats.rows, {}, {}), v.membership, v.parts) for v in index.views))


def under(spark: SparkSession, stored: Mapping[str, str]) -> AbstractContextManager[None]:
    """For a while expressions mean what they meant when the settings were noted."""
    return having(spark, {key: value for key, value in stored.items() if kind_of_setting(key) == "meaning"})
