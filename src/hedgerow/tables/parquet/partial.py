"""Names the folder that a run writes a table in, beside its place, and deletes the folders of killed runs.

    .orders.hedgerow-partial-<machine>-<process>-<id>

Each run has a folder of its own: two runs in one would delete, or take for their own, the files of the other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.parquet.runs import RUN, new_run, was_killed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def new_partial(path: str) -> tuple[str, str]:
    """Return the folder around a table, and a new name in it under which the table is written."""
    around, prefix = _prefix(path)
    return around, f"{prefix}{new_run()}"


def partials(spark: SparkSession, path: str) -> list[str]:
    """Return the names, in the folder around a table, of what runs write, or wrote until they were killed."""
    around, prefix = _prefix(path)
    names = Folder(spark, around).sizes()
    return [name for name in names if name.startswith(prefix) and re.fullmatch(RUN, name.removeprefix(prefix))]


def delete_left_behind(spark: SparkSession, path: str) -> None:
    """Delete what killed runs wrote for this table."""
    around, prefix = _prefix(path)
    for name in partials(spark, path):
        if was_killed(name.removeprefix(prefix), Folder(spark, around), name):
            Folder(spark, around).delete(name)


def _prefix(path: str) -> tuple[str, str]:
    parent, _, last = path.rstrip("/").rpartition("/")
    return parent or ("/" if path.startswith("/") else "."), f".{last}.hedgerow-partial-"
