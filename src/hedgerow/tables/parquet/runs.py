"""Names the runs that write, `<machine>-<process>-<id>`, and recognises killed ones."""

from __future__ import annotations

import os
import re
import socket
from uuid import uuid4
from zlib import crc32

from hedgerow.spark.storage.folder import Folder

RUN = r"[0-9a-f]{8}-\d{1,9}-[0-9a-f]{8}"
DRAFT = rf"append-{RUN}"  # the names of folders inside of `_hedgerow` for the files of an append
_DAY_SECONDS = 24 * 3600


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
