"""Names the runs that write, and the folders that they write in beside a table; deletes those of killed runs.

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

RUN = r"[0-9a-f]{8}-\d{1,9}-[0-9a-f]{8}"
DRAFT = rf"append-{RUN}"  # the names of folders inside of `_hedgerow` for the files of an append
_DAY_SECONDS = 24 * 3600
_NO_PROCESS = 999_999_999  # larger than the number of any process


def new_run() -> str:
    """Return a name that no other run has."""
    return f"{_machine()}-{os.getpid()}-{uuid4().hex[:8]}"


def was_killed(run: str, folder: Folder, name: str) -> bool:
    """True if the run's process is gone; on another machine, which cannot be asked, if `name` is a day old.

    `name`: a file or folder in `folder` that the run made."""
    if not (re.fullmatch(RUN, run) and run.startswith(f"{_machine()}-")):
        return folder.age(name) > _DAY_SECONDS
    try:
        os.kill(int(run.split("-")[1]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _machine() -> str:
    return f"{crc32(socket.gethostname().encode()):08x}"


def new_partial(path: str) -> tuple[str, str]:
    """Return the folder around a table, and a new name in it under which the table is written."""
    around, prefix = _prefix(path)
    return around, f"{prefix}{new_run()}"


def partials(spark: SparkSession, path: str) -> list[str]:
    """Return the names of the folders beside a table in which runs write it, or wrote it until they were killed."""
    around, prefix = _prefix(path)
    names = Folder(spark, around).sizes()
    return [name for name in names if name.startswith(prefix) and re.fullmatch(RUN, name.removeprefix(prefix))]


def ended_partial(path: str) -> str:
    """Return a new name beside a table for the folder of a run that failed, as if the run had been killed."""
    return f"{_prefix(path)[1]}{_machine()}-{_NO_PROCESS}-{uuid4().hex[:8]}"


def killed_partials(spark: SparkSession, path: str) -> list[str]:
    """Return the names of these folders whose runs were killed or failed."""
    around, prefix = _prefix(path)
    folder = Folder(spark, around)
    return [name for name in partials(spark, path) if was_killed(name.removeprefix(prefix), folder, name)]


def delete_left_behind(spark: SparkSession, path: str) -> None:
    """Delete what killed runs wrote for this table."""
    around, _ = _prefix(path)
    for name in killed_partials(spark, path):
        Folder(spark, around).delete(name)


def _prefix(path: str) -> tuple[str, str]:
    parent, _, last = path.rstrip("/").rpartition("/")
    return parent or ("/" if path.startswith("/") else "."), f".{last}.hedgerow-partial-"
