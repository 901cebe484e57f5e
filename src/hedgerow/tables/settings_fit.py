"""Decides how much of an index is valid in a session: all of it, the session-safe part, or nothing.

same settings as when the table was written       everything
another meaning of expressions (ANSI mode, zone)  bounds of columns, comparisons with literals, LIKE over strings
another way of reading, or an unknown setting     nothing: open every file
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.session_safe import session_safe_index
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.spark.judged import kind_of_setting
from hedgerow.spark.session_settings import EFFECTS, TRUSTED, engines_of, relevant_settings, without_engines
from hedgerow.spark.start.session import OTHER_GRAMMAR, temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AS_MEANING = ("spark.sql.caseSensitive",)  # Hedgerow compares names as Spark does


def difference(written: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the most serious kind of difference, `reading` or `meaning`, and a sentence about one such setting.

    None if all differences are harmless. Both are relevant settings; the session's list of trusted names holds for
    those that the table was written under, too."""
    engines = engines_of(now)  # those of the writer do not count: Spark itself evaluates what an index stores
    if engines and engines[0].kind == "reading":
        return "reading", engines[0].reason
    trusted = now.get(TRUSTED, "")
    written, now = without_engines(relevant_settings({**written, TRUSTED: trusted})), without_engines(now)
    differing = sorted(key for key in {*written, *now} if written.get(key) != now.get(key))
    differing += [key for key in OTHER_GRAMMAR if written.get(key) == "true"]  # the index has texts of Spark's default
    kinds = {key: "meaning" if key in _AS_MEANING else kind_of_setting(key) for key in differing}
    for key, kind in kinds.items():
        if kind not in ("meaning", "harmless"):
            return "reading", f"the setting {key} is not what it was when the table was written"
    if engines:
        return "meaning", engines[0].reason
    changed = [key for key, kind in kinds.items() if kind == "meaning"]
    changed.sort(key=lambda key: not key.startswith("spark."))  # the facts of Java follow the time zone
    return ("meaning", f"{changed[0]} is not what it was when the table was written") if changed else None


def consequence(written: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return a sentence about a setting that differs, and how far Hedgerow still skips files; None if none differs."""
    differs = difference(written, now)
    return differs and f"{differs[1]}, so {EFFECTS[differs[0]]}"


def check_settings(failed: str, written: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise HedgerowError if the session reads or understands values in another way than when the table was written.

    `failed`: the beginning of the message's sentence."""
    differs = difference(written, without_engines(now))
    if differs is not None:
        raise HedgerowError(f"{failed} in this session: {differs[1]}. Change it back, or apply the layout again")


def fitting_index(index: BlockIndex, schema: Mapping[str, Type], differs: str | None) -> BlockIndex:
    """Return the part of the index that is valid after settings of the kind `differs` changed; None: none changed."""
    if differs is None:
        return index
    if differs == "meaning":
        return session_safe_index(index, schema)
    return index.map_stats(lambda stats: Stats(stats.rows, {}, {}))  # row counts only


def settings_as_written(spark: SparkSession, stored: Mapping[str, str]) -> AbstractContextManager[None]:
    """Set the stored settings of kind 'meaning' while the body runs, so that expressions have the same meaning."""
    return temporary_settings(spark, {key: value for key, value in stored.items() if kind_of_setting(key) == "meaning"})
