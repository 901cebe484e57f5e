"""Ends a command at SIGTERM as Ctrl-C does, so that it deletes its unfinished files."""

from __future__ import annotations

import signal
from typing import Any


def as_if_interrupted(*_: Any) -> None:
    """Call the handler of Ctrl-C; PySpark's cancels the jobs that run. If there is none, raise its error."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:
        raise KeyboardInterrupt
