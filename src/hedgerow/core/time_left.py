"""Estimates how long the rest of some work takes, in words."""

from __future__ import annotations

from time import perf_counter

_MINUTE, _HOUR = 60, 3600


class TimeLeft:
    """A stopwatch for work of a known size, of which the rest is as fast as what was done since its start."""

    def __init__(self, size: float) -> None:
        self.left, self.done, self.start = size, 0.0, perf_counter()

    def after(self, size: float) -> str:
        """Return the estimate, as the end of a sentence, now that so much more is done; nothing if all is done."""
        self.left, self.done = self.left - size, self.done + size
        if self.left <= 0:
            return ""
        left = in_words((perf_counter() - self.start) * self.left / max(1.0, self.done))
        return f", about {left} left"


def in_words(seconds: float) -> str:
    """
    >>> in_words(40), in_words(100), in_words(3000), in_words(9000)
    ('40 seconds', '100 seconds', '50 minutes', '2.5 hours')
    """
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} seconds"
    return f"{seconds / _MINUTE:.0f} minutes" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} hours"
