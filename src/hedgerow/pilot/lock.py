"""The lock of a table: autopilots and calibrations work on a table one at a time."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from hedgerow.pilot.clock import days_since, utc_now
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import SIDE, TRIAL

_LOCK = f"{SIDE}/auto.lock"
_MAX_HOURS = 24.0  # An older lock of another machine counts as left behind: its process cannot be asked.


def trial_folder() -> str:
    """Return the name, inside of the table, of a new folder for a rewrite that is only timed."""
    return f"{SIDE}/calibrate-{uuid4().hex[:8]}"


@contextmanager
def table_lock(folder: Folder) -> Iterator[str | None]:
    """Hold the table's lock while the body runs; give its holder if that is another process."""
    own = {"host": socket.gethostname(), "process": os.getpid(), "at": utc_now(), "id": uuid4().hex}
    text = json.dumps(own).encode()
    if not folder.write(_LOCK, text, new=True):
        holder = _holder(folder)
        if holder is not None:
            yield holder
            return
        folder.delete(_LOCK)
        if not folder.write(_LOCK, text, new=True) or folder.read_json(_LOCK)["id"] != own["id"]:
            yield "it began just now"
            return
    try:
        for name in folder.sizes(SIDE):
            if re.fullmatch(TRIAL, name):  # of a process that was killed
                folder.delete(f"{SIDE}/{name}")
        yield None
    finally:
        folder.delete(_LOCK)


def _holder(folder: Folder) -> str | None:
    """Return which process holds the lock; None if it is gone."""
    try:
        lock = folder.read_json(_LOCK)
        shown = f"process {int(lock['process'])} on {lock['host']} since {lock['at']}"
        if lock["host"] != socket.gethostname():
            return shown if days_since(lock["at"]) * 24 < _MAX_HOURS else None
        os.kill(int(lock["process"]), 0)
        return shown
    except (ProcessLookupError, ValueError, KeyError, TypeError):
        return None
    except PermissionError:
        return shown
