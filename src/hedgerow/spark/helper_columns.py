"""Names columns that exist only while rows are moved; the names are random, so they never clash with a table's."""

from __future__ import annotations

from uuid import uuid4

_RUN = uuid4().hex


def helper_name(role: str) -> str:
    """Return the column name for a role, the same for as long as the process lives."""
    return f"_hedgerow_{role}_{_RUN}"
