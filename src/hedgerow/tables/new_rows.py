"""Checks the rows that a user appends, for both formats."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.errors import HedgerowError


def check_names(columns: Sequence[str]) -> None:
    """Raise HedgerowError if two of the columns have one name, but for upper and lower case, as tables see names.

    >>> check_names(["id", "v", "V"])
    Traceback (most recent call last):
    hedgerow.core.errors.HedgerowError: the new rows have two columns v and V, which a table cannot tell apart
    """
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            both = f"{seen[name.lower()]} and {name}"
            raise HedgerowError(f"the new rows have two columns {both}, which a table cannot tell apart")
        seen[name.lower()] = name
