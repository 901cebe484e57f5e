"""How much of an index holds in a session: all of it, what means the same in every session, or nothing.

same settings as when the table was written       everything
another meaning of expressions (ANSI mode, zone)  bounds of columns, comparisons with literals, LIKE over strings
another way of reading, or a setting not judged   nothing: open every file
"""

from __future__ import annotations

from collections.abc import Mapping

from hedgerow.core.stats import Stats
from hedgerow.core.steady import steady_index
from hedgerow.core.types import Type
from hedgerow.core.views import BlockIndex, View
from hedgerow.spark.judged import kind_of_setting

_VERSION = "spark.version"


def difference(written: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, str] | None:
    """The most serious kind of setting that differs, `meaning` or `reading`, and a sentence that names one such."""
    differing = sorted(key for key in {*written, *now} if written.get(key) != now.get(key))
    if _VERSION not in written:  # Hedgerow noted few settings then
        differing = sorted({_VERSION, *(key for key in differing if key in now and key not in written)})
    for key in differing:
        if key != _VERSION and kind_of_setting(key) not in ("meaning", "harmless"):
            return "reading", f"the setting {key} is not what it was when the table was written"
    changed = [key for key in differing if key == _VERSION or kind_of_setting(key) == "meaning"]
    return ("meaning", f"{changed[0]} is not what it was when the table was written") if changed else None


def fitting_index(
    index: BlockIndex, schema: Mapping[str, Type], written: Mapping[str, str], now: Mapping[str, str]
) -> BlockIndex:
    """What of the index holds under the settings `now`."""
    found = difference(written, now)
    if found is None:
        return index
    return steady_index(index, schema) if found[0] == "meaning" else _silent(index)


def _silent(index: BlockIndex) -> BlockIndex:
    """The same blocks, of which nothing is known but how many rows they have."""
    return BlockIndex(tuple(View(Stats(v.stats.rows, {}, {}), v.membership, v.parts) for v in index.views))
