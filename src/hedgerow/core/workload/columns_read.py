"""The top-level columns that a query reads; they decide how many bytes it reads."""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.core.predicates.nodes import Predicate, columns_of
from hedgerow.core.predicates.sql_text import quote_name


def top(name: str) -> str:
    """Return the top-level column of a dotted name, as SQL.

    >>> top("address.city"), top("`a.b`.c"), top("user")
    ('address', '`a.b`', '`user`')
    """
    return name[: name.index("`", 1) + 1] if name.startswith("`") else quote_name(name.split(".")[0])


def read_columns(reads: Sequence[str] | None, p: Predicate) -> list[str] | None:
    """Return the top-level columns that a query reads, those of its condition included; None means all columns."""
    return None if reads is None else sorted({*map(top, reads), *(quote_name(c.path[0]) for c in columns_of(p))})
