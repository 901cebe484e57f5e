"""Finds ranges of keys that cover all rows added or changed between two versions of a Delta table, from its log.

A new or changed row is in a file that a commit added, and the file's statistics have the least and the greatest key. A
file that was only rewritten (`dataChange` is false) has the same rows as before. Keys of deleted rows need no range: a
join no longer finds these rows. So for a key outside of all ranges a join finds the same row as before, or no row.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError
from hedgerow.spark.start.session import spark_errors
from hedgerow.spark.storage.delta_log import delta_log
from hedgerow.spark.storage.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_COMMITS, MAX_RANGES = 100, 50


def changed_keys(spark: SparkSession, root: str, before: str, now: str, column: str) -> list[tuple[int, int]] | None:
    """Return ranges that cover the key of every row added or changed between two versions; None if they are unknown.

    `before`, `now`: the marks of the versions, see `Snapshot.mark`. Keys must be integers, and columns must have the
    same names in the data files.
    """
    try:
        kind, old_id, _, old_number = before.split(" ")
        _, new_id, _, new_number = now.split(" ")
        first, last = int(old_number), int(new_number)
        if kind != "delta" or old_id != new_id or not 0 < last - first <= MAX_COMMITS:
            return None
        log = delta_log(spark, root)
        snapshot = log.snapshot(last)
        if (log.snapshot(first).mark, snapshot.mark) != (before, now):
            return None  # this is another table's log
        if snapshot.is_mapped:
            return None
        folder, ranges = Folder(spark, f"{log.path}/_delta_log"), []
        for version in range(first + 1, last + 1):
            for line in folder.read(f"{version:020d}.json").decode().splitlines():
                action = json.loads(line)
                if "metaData" in action or "protocol" in action:
                    return None
                if "add" in action and action["add"]["dataChange"]:
                    ranges.append(_range(action["add"], column))
    except (HedgerowError, ValueError, KeyError, TypeError):
        return None
    except spark_errors():
        return None
    return ranges if len(ranges) <= MAX_RANGES else [(min(low for low, _ in ranges), max(high for _, high in ranges))]


def _range(add: dict[str, Any], column: str) -> tuple[int, int]:
    """Return the least and the greatest key of an added file; KeyError or TypeError if they are not known."""
    stats = json.loads(add["stats"])
    low, high = (stats[end][column] for end in ("minValues", "maxValues"))
    if type(low) is not int or type(high) is not int:
        raise TypeError
    return low, high
