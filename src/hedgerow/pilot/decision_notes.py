"""decisions: the autopilot's decisions about a table, kept as notes beside it."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from hedgerow.pilot.decision import Decision, decision_from_json
from hedgerow.spark.storage.folder import Folder
from hedgerow.tables.known_files import DECISIONS
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_WAITING = "waiting.json"


def note(folder: Folder, decision: Decision) -> None:
    """Write a decision into the table's folder.

    Only the last one that has neither figures nor a search is kept, because a table that is followed gets many."""
    is_waiting = decision.figures is None and not decision.search_seconds
    name = _WAITING if is_waiting else f"{decision.at.replace(':', '')}-{uuid4().hex[:8]}.json"
    folder.write(f"{DECISIONS}/{name}", json.dumps(asdict(decision)).encode())


def decisions(spark: SparkSession, table: str) -> list[Decision]:
    """Return the autopilot's decisions about a table, the newest first; damaged notes are left out."""
    folder = Folder(spark, QueryLog.of(spark, table).root)
    if not folder.exists(DECISIONS):
        return []
    read = []
    for name in folder.sizes(DECISIONS):
        try:
            read.append(decision_from_json(folder.read_json(f"{DECISIONS}/{name}")))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
    return sorted(read, key=lambda decision: datetime.fromisoformat(decision.at), reverse=True)
