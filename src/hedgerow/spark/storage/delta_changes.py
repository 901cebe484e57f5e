"""Finds in a Delta table's log which keys may have other rows in one version than in an earlier one.

A row that is new or different lies in a file that a commit added, with the least and the greatest key in its
statistics. Files that were only rewritten (`dataChange` is false) hold the rows of before, and a row that is gone is
nobody's partner any more. So whatever happened: outside of the ranges of added files, a key leads to the same row.
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
    """Ranges that hold every key whose row may differ between two versions of a table (see `Snapshot.mark`).

    None if that is not known. Keys are integers; a table whose columns have other names in its files is not looked at.
    """
    try:
        (kind, table, _, number), (_, other, _, new) = before.split(" "), now.split(" ")
        first, last = int(number), int(new)
        if kind != "delta" or table != other or not 0 < last - first <= MAX_COMMITS:
            return None
        log = delta_log(spark, root)
        snapshot = log.snapshot(last)
        if (log.snapshot(first).mark, snapshot.mark) != (before, now):
            return None  # the log is not that of the version before
        if any(name != own for name, own in snapshot.physical.items()):
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
    """The least and the greatest key of an added file; KeyError or TypeError if they are not known."""
    stats = json.loads(add["stats"])
    low, high = (stats[end][column] for end in ("minValues", "maxValues"))
    if type(low) is not int or type(high) is not int:
        raise TypeError
    return low, high
