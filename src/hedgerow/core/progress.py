"""What long work says of itself: in a terminal, a line every two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

EVERY = 2.0  # seconds


class Telling:
    def __init__(self, who: str) -> None:
        self.who = who
        self.start = self.said = perf_counter()

    @property
    def seconds(self) -> float:
        return perf_counter() - self.start

    def sometimes(self, sentence: Callable[[], str]) -> None:
        if perf_counter() - self.said > EVERY and sys.stderr.isatty():
            self.said = perf_counter()
            self.now(sentence())

    def now(self, sentence: str) -> None:
        print(f"{self.who}: {sentence}", file=sys.stderr, flush=True)
