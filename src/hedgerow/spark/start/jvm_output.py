"""Holds back the chatter of a starting JVM, and finds in it the reason why Spark did not start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

# Lines that a JVM and Spark print at every start; the first other line is the reason of a failure.
_USUAL_LINE = re.compile(r"\s*$|.*\bWARN|Using |Setting |To adjust |\s+at ")


@contextmanager
def jvm_output() -> Iterator[IO[str]]:
    """Redirects standard error to a file; a process started meanwhile, like Spark's JVM, writes there until it ends."""
    with TemporaryFile("w+", errors="replace") as held:
        sys.stderr.flush()
        before = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield held
        finally:
            os.dup2(before, 2)
            os.close(before)


def start_failure(held: IO[str]) -> str | None:
    """The reason why a JVM did not start: the first line of its output that is not printed at every start."""
    held.seek(0)
    line = next((line for line in held if not _USUAL_LINE.match(line)), None)
    return line and re.sub(r"^Exception in thread \S+ [\w.$]+: ", "", line).strip()
