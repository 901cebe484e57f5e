"""Progress reports of long work, on stderr; at most one every two seconds, and only in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

SECONDS_BETWEEN_REPORTS = 2.0


class Progress:
    """A stopwatch for one piece of work, with reports that begin with the work's name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.start = self.last_report = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self.start

    def report_sometimes(self, sentence: Callable[[], str]) -> None:
        """Print the sentence if stderr is a terminal and the last report is at least SECONDS_BETWEEN_REPORTS old."""
        if perf_counter() - self.last_report > SECONDS_BETWEEN_REPORTS and sys.stderr.isatty():
            self.last_report = perf_counter()
            self.report(sentence())

    def report(self, sentence: str) -> None:
        print(f"{self.name}: {sentence}", file=sys.stderr, flush=True)
