"""Names of columns that exist only while rows are moved: random, so that no column of a table has one of them."""

from __future__ import annotations

from uuid import uuid4

_RUN = uuid4().hex


def helper_name(what: str) -> str:
    """The same for as long as the process lives."""
    return f"_hedgerow_{what}_{_RUN}"
