"""A lock among the processes of this machine and user."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from hedgerow.core.errors import HedgerowError

# A guard for each name: a thread that waits for one lock does not block threads that release another one.
_guards, _holders, _files = defaultdict[str, Lock](Lock), Counter[str](), dict[str, int]()


@contextmanager
def machine_lock(name: str) -> Iterator[None]:
    """Hold the lock of that name while the body runs; other processes wait for it, other threads do not.

    On Windows there is no lock."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with _guards[name]:
        if not _holders[name]:
            _files[name] = _opened(hashlib.sha256(name.encode()).hexdigest()[:16])
            fcntl.flock(_files[name], fcntl.LOCK_EX)
        _holders[name] += 1
    try:
        yield
    finally:
        with _guards[name]:
            _holders[name] -= 1
            if not _holders[name]:
                os.close(_files.pop(name))


def _opened(digest: str) -> int:
    try:
        place = Path(tempfile.gettempdir()) / f"hedgerow-{digest}-{os.getuid()}.lock"
        return os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise HedgerowError(f"the folder for temporary files cannot be written: {error}") from error
