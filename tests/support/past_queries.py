"""Queries of the last days, as the log of a table has them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any


def past_query(condition: str, days_ago: float, number: int) -> dict[str, Any]:
    """One that took a second."""
    at = datetime.now(timezone.utc) - timedelta(days=days_ago)
    return {
        "query": f"q{number}",
        "at": int(at.timestamp() * 1e6),
        "seconds": 1.0,
        "redacted": False,
        "conditions": [condition],
        "keys": [""],
        "joins": [""],
        "columns": ["id", "number"],
        "source": "test",
        "kinds": ["where"],
        "means": [""],
        **dict.fromkeys(("files", "files_listed", "bytes", "rows", "rows_kept"), 100),
    }
