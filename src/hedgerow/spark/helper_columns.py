"""Names for columns that exist only while rows are moved: random, so that they never clash with a table's columns."""

from __future__ import annotations

from uuid import uuid4

_RUN = uuid4().hex


def helper_name(role: str) -> str:
    """The column name for a role, the same for as long as the process lives."""
    return f"_hedgerow_{role}_{_RUN}"
