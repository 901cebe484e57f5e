"""Times as text, as decisions and locks store them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def days_since(at: str) -> float:
    """Return the days since a time; ValueError or TypeError if the text is no time with a zone."""
    return (datetime.now(timezone.utc) - datetime.fromisoformat(at)) / timedelta(days=1)
