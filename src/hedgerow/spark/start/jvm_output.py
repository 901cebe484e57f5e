"""Hides the messages of a starting JVM, and finds in them the reason why Spark did not start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

# Lines that a JVM and Spark print at every start; the first line that is not one of these is the reason of a failure.
_USUAL_LINE = re.compile(r"\s*$|.*\bWARN|Using |Setting |To adjust |\s+at ")


@contextmanager
def jvm_output() -> Iterator[IO[str]]:
    """Redirect standard error to a file; a process started meanwhile, like Spark's JVM, writes there until it ends."""
    with TemporaryFile("w+", errors="replace") as output:
        sys.stderr.flush()
        own_stderr = os.dup(2)
        os.dup2(output.fileno(), 2)
        try:
            yield output
        finally:
            os.dup2(own_stderr, 2)
            os.close(own_stderr)


def start_failure(output: IO[str]) -> str | None:
    """Return the reason why a JVM did not start: the first line of its output that is not printed at every start."""
    output.seek(0)
    line = next((line for line in output if not _USUAL_LINE.match(line)), None)
    return line and re.sub(r"^Exception in thread \S+ [\w.$]+: ", "", line).strip()
