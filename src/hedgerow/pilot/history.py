"""The earlier decisions about a table: what was rewritten, how long it took, and when a layout was last looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

import numpy as np

from hedgerow.pilot.clock import days_since
from hedgerow.pilot.cost import Run
from hedgerow.pilot.decision import Decision


@dataclass(frozen=True, slots=True)
class History:
    """Decisions about a table, the newest first; `period` days count as recent."""

    decisions: Sequence[Decision]
    period: float

    @property
    def recent(self) -> list[Decision]:
        return [d for d in self.decisions if days_since(d.at) <= self.period]

    @property
    def bytes_rewritten(self) -> float:
        """The bytes of all recent rewrites."""
        return sum(d.outcome.bytes for d in self.recent if d.outcome is not None)

    @property
    def days_since_whole(self) -> float | None:
        """Days since the last rewrite of the whole table."""
        return min((days_since(d.at) for d in self.decisions if d.done and d.action == "whole table"), default=None)

    @property
    def rewrites(self) -> list[Run]:
        """All rewrites that were carried out, the oldest first."""
        outcomes = [d.outcome for d in reversed(self.decisions) if d.outcome is not None]
        return [Run(outcome.bytes, outcome.items, outcome.seconds) for outcome in outcomes if outcome.bytes]

    @property
    def last_search(self) -> Decision | None:
        """The last decision for which a layout was looked for."""
        return next((d for d in self.decisions if d.search_seconds), None)

    def searches_without_result(self, margin: float) -> int:
        """Return how many of the last searches found nothing, up to the last one after which something was done."""
        searches = (d for d in self.decisions if d.search_seconds)
        return sum(d.found_nothing(margin) for d in takewhile(lambda d: d.action == "nothing", searches))

    def has_judged(self, time: str) -> bool:
        """True if the table's files were judged since a time."""
        since = datetime.fromisoformat(time)
        return any(d.figures is not None and datetime.fromisoformat(d.at) >= since for d in self.decisions)

    @property
    def times_in_all(self) -> dict[str, float]:
        """Return for each part how often its rows were rewritten, as far as is known."""
        return {d.outcome.part: d.outcome.times for d in reversed(self.decisions) if d.outcome and d.outcome.part}

    def times_moved(self, cooldown: float) -> dict[str, float]:
        """Return for each part how often its rows were rewritten recently; infinity within the cooldown."""
        times: dict[str, float] = {}
        for d in self.recent:
            if d.outcome is not None and d.outcome.part is not None:
                times[d.outcome.part] = d.outcome.times if days_since(d.at) >= cooldown else np.inf
        return times
