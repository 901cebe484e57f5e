"""Names the folder that a run writes a table in, beside its place, and deletes the folders of killed runs.

    .orders.hedgerow-partial-<machine>-<process>-<id>

Each run has a folder of its own: two runs in one would delete, or take for their own, the files of the other.
"""

from __future__ import annotations

import os
import re
import socket
from typing import TYPE_CHECKING
from uuid import uuid4
from zlib import crc32

from hedgerow.spark.storage.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN = re.compile(r"([0-9a-f]{8})-(\d{1,9})-[0-9a-f]{8}")
_DAY_SECONDS = 24 * 3600


def new_partial(path: str) -> tuple[str, str]:
    """Return the folder around a table, and a new name in it under which the table is written."""
    around, prefix = _prefix(path)
    return around, f"{prefix}{_machine()}-{os.getpid()}-{uuid4().hex[:8]}"


def partials(spark: SparkSession, path: str) -> list[str]:
    """Return the names, in the folder around a table, of what runs write, or wrote until they were killed."""
    around, prefix = _prefix(path)
    names = Folder(spark, around).sizes()
    return [name for name in names if name.startswith(prefix) and _RUN.fullmatch(name.removeprefix(prefix))]


def delete_left_behind(spark: SparkSession, path: str) -> None:
    """Delete what killed runs wrote for this table."""
    around, prefix = _prefix(path)
    for name in partials(spark, path):
        if _was_killed(Folder(spark, around), name, name.removeprefix(prefix)):
            Folder(spark, around).delete(name)


def _prefix(path: str) -> tuple[str, str]:
    parent, _, last = path.rstrip("/").rpartition("/")
    return parent or ("/" if path.startswith("/") else "."), f".{last}.hedgerow-partial-"


def _machine() -> str:
    return f"{crc32(socket.gethostname().encode()):08x}"


def _was_killed(around: Folder, name: str, run: str) -> bool:
    """True if the run's process is gone; on another machine, which cannot be asked, if the folder is a day old."""
    machine, process, _ = run.split("-")
    if machine != _machine():
        return around.age(name) > _DAY_SECONDS
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
