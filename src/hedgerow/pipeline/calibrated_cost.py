"""The cost of a rewrite for `advise` and the autopilot: as `calibrate` measured it on a table, or assumed."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

from hedgerow.core.learning.seconds import RewriteCost
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.tables.known_files import REWRITE_COST

ASSUMED_SCANS = 50.0  # a rewrite takes as long as so many timed scans of all columns: 30 to 80 on eight tables
_USUAL_SCANS = 20.0  # the same at the usual speed, which is slower than most tables are read
_FIXED_SECONDS = 5.0  # of a rewrite without bytes: it reads the log, commits, and writes the index
TIMED_SPREAD, ASSUMED_SPREAD = 1.5, 2.0  # a rewrite takes up to so many times as long as its estimate, or as short


def assumed_cost(byte: float, scans: float = _USUAL_SCANS) -> RewriteCost:
    """Return the cost of a rewrite on a table whose rewrites were never timed; `byte`: the seconds to scan a byte."""
    return RewriteCost(_FIXED_SECONDS, scans * byte)


def save_cost(folder: Folder, cost: RewriteCost) -> None:
    """Write the cost into the table's folder."""
    folder.write(REWRITE_COST, json.dumps(asdict(cost)).encode())


def calibrated_cost(folder: Folder) -> RewriteCost | None:
    """Return the saved cost; None if the table was not calibrated, or the file is damaged."""
    try:
        saved = folder.read_json(REWRITE_COST) if folder.exists(REWRITE_COST) else {}
        parts = [float(saved[name]) for name in ("fixed", "byte", "item")]
    except (ValueError, KeyError, TypeError):
        return None
    return RewriteCost(*parts) if all(0 <= part < math.inf for part in parts) else None


def count_items(learned: Learned, limit: int = MAX_DESCRIBED_ITEMS) -> int:
    """Return how many items the index of a table in this layout describes."""
    return len(items_to_index(learned.layout, learned.predicates, learned.noted, learned.joined, limit))
