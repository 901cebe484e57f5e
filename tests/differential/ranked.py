"""Judges answers that Spark does not fix: any k rows, and the first k rows of an order that has ties.

A second query gives every row the answer could have, with its rank. Right are as many rows, with the same ranks, each
no more often than it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql import Row


def is_right(found: Counter[str], expected: Counter[str], ranked: Iterable[Row]) -> bool:
    """True if the rows `found` are as right as the expected ones; rows as texts, `ranked` with the rank as last column."""
    every: Counter[str] = Counter()
    ranks: dict[str, int] = {}
    for row in ranked:
        text = str(Row(*row.__fields__[:-1])(*row[:-1]))
        every[text] += 1
        ranks[text] = row[-1]

    def ranks_of(rows: Counter[str]) -> Counter[int]:
        return Counter(ranks[row] for row in rows.elements())

    return found <= every and ranks_of(found) == ranks_of(expected)


def text_of(value: str | None) -> str:
    """Return a row that has only this value, as text."""
    return str(Row("row__")(value))
