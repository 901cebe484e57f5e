"""Budget: limits the seconds that the autopilot works in an hour, while it follows a table."""

from __future__ import annotations

from dataclasses import dataclass

_HOUR = 3600.0


@dataclass
class Budget:
    """Seconds of work. Each hour adds `per_hour`, up to as many; the last piece of work may overdraw it.

    `left`: the seconds at the time `at` of a clock.
    """

    per_hour: float
    left: float
    at: float

    @staticmethod
    def full(per_hour: float, at: float) -> Budget:
        return Budget(per_hour, per_hour, at)

    def spend(self, seconds: float, at: float) -> None:
        """Take seconds of work that ended at a time."""
        begun, rate = at - seconds, self.per_hour / _HOUR
        self.left = min(self.per_hour, self.left + (begun - self.at) * rate) + seconds * (rate - 1)
        self.at = at

    def pause(self, at: float) -> float:
        """Return the seconds from a time until work may begin.

        >>> budget = Budget.full(600, at=0)
        >>> budget.spend(900, at=900)
        >>> budget.pause(900)
        900.0
        """
        left = self.left + (at - self.at) * self.per_hour / _HOUR
        return max(0.0, -left * _HOUR / self.per_hour)
