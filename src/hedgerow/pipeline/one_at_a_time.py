"""One at a time: who changes a table by its log holds the table's lock meanwhile."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from uuid import uuid4

from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import SIDE, TRIAL

_LOCK = f"{SIDE}/auto.lock"
_HOURS = 24.0  # after that, a lock whose process cannot be asked counts as left behind


def utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def days_since(at: str) -> float:
    return (datetime.now(timezone.utc) - datetime.fromisoformat(at)) / timedelta(days=1)


def trial_folder() -> str:
    """The name, inside of the table, of a new folder for a rewrite that is only timed."""
    return f"{SIDE}/calibrate-{uuid4().hex[:8]}"


@contextmanager
def alone(folder: Folder) -> Iterator[str | None]:
    """Holds the table's lock; gives who holds it, if that is another."""
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
    """Who holds the lock; None if that process is gone."""
    try:
        lock = folder.read_json(_LOCK)
        shown = f"process {int(lock['process'])} on {lock['host']} since {lock['at']}"
        if lock["host"] != socket.gethostname():
            return shown if days_since(lock["at"]) * 24 < _HOURS else None
        os.kill(int(lock["process"]), 0)
        return shown
    except (ProcessLookupError, ValueError, KeyError, TypeError):
        return None
    except PermissionError:
        return shown
