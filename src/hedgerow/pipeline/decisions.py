"""What the autopilot decided about a table, and why: a note each, beside the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hedgerow.core.learning.rewrite_cost import RewriteCost
from hedgerow.core.learning.seconds import Speed
from hedgerow.pipeline.one_at_a_time import days_since
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECISIONS = f"{SIDE}/decisions"
_OF_EACH = {"gain": float, "cost": float, "looked": float, "facts": dict}
_OF_A_REWRITE = {"bytes": float, "items": int, "seconds": float}


@dataclass(frozen=True)
class Decision:
    """What the autopilot did, or would do, and why; `after` is the measured outcome of a rewrite.

    `gain`, `cost` and `looked` are seconds: what is saved, what the rewrite takes, and what deciding itself took, if a
    layout was looked for. `speed`: how fast queries were measured to be, if they were."""

    at: str
    table: str
    action: str
    reasons: tuple[str, ...]
    facts: Mapping[str, Any]
    gain: float = 0.0
    cost: float = 0.0
    done: bool = False
    after: Mapping[str, Any] | None = None
    looked: float = 0.0
    speed: Mapping[str, float] | None = None

    @property
    def measured(self) -> Speed | None:
        match self.speed:
            case {"query": float() as q, "file": float() as f, "byte": float() as b, "unskipped": float() as u}:
                return Speed(q, f, b, u)
        return None

    @property
    def rewriting(self) -> RewriteCost | None:
        """The cost of a rewrite that it was based on, if it came that far."""
        match self.facts:
            case {"fixed": float() | int() as fixed, "rate": float() as rate} if rate > 0:
                return RewriteCost(fixed, rate)
        return None

    @property
    def promised(self) -> float | None:
        """The seconds of a query from then on, as they were estimated."""
        match self.facts:
            case {"now": float() | int() as now, "then": float() | int() as then}:
                return then if self.done else now
        return None

    def is_in_vain(self, margin: float) -> bool:
        """Whether a layout was learned, and saves too little. What pays, and a limit forbids, is not in vain."""
        return self.action == "nothing" and self.gain < margin * self.cost

    def would_pay(self, queries: float, margin: float) -> bool:
        """Whether what was refused, for too few queries were expected, would pay for so many, and another look too."""
        match self.facts:
            case {"queries": float() | int() as few} if few > 0 and self.is_in_vain(margin):
                return self.gain / few * queries >= margin * (self.cost + self.looked)
        return False

    def __str__(self) -> str:
        return (
            f"{self.action}{'' if self.done or self.action == 'nothing' else ' (not done)'}: {'; '.join(self.reasons)}"
        )


def note(folder: Folder, decision: Decision) -> None:
    name = f"{DECISIONS}/{decision.at.replace(':', '')}-{uuid4().hex[:8]}.json"
    folder.write(name, json.dumps(asdict(decision)).encode())


def decisions(spark: SparkSession, table: str) -> list[Decision]:
    """What the autopilot decided about a table, the newest first; a damaged note is passed over."""
    folder = Folder(spark, QueryLog.of(spark, table).root)
    if not folder.exists(DECISIONS):
        return []
    found = []
    for name in sorted(folder.sizes(DECISIONS), reverse=True):
        try:
            found.append(noted(folder.read_json(f"{DECISIONS}/{name}")))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return found


def noted(saved: Mapping[str, Any]) -> Decision:
    """The decision of a note; some error of Python if the note is damaged."""
    found = Decision(**{**saved, "reasons": tuple(map(str, saved["reasons"]))})
    days_since(found.at)
    after = found.after and {**found.after, **_checked(_OF_A_REWRITE, found.after)}
    return replace(found, after=after, **_checked(_OF_EACH, asdict(found)))


def _checked(kinds: Mapping[str, Callable[[Any], Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kind(values[name]) for name, kind in kinds.items()}
