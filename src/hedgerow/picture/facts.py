"""What the picture of a table shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """A query: the shares of the table's rows that it reads and that match, and which of the files it opens.

    `matching` is None if only Spark could tell. `replica`: the copy of the table that it reads instead."""

    text: str
    rows_read: float
    matching: float | None
    opened: frozenset[int]
    replica: str | None = None


@dataclass(frozen=True)
class File:
    name: str
    rows: int
    block: int


@dataclass(frozen=True)
class Branch:
    """A cut of the tree, or a block at its end; `queries`: how many open a file below it."""

    text: str
    rows: int
    queries: int
    yes: Branch | None = None
    no: Branch | None = None


@dataclass(frozen=True)
class Picture:
    """`levels`: for each level of the tree, how many cuts are on each column.

    `narrow`: of each column that queries filter on, the mean share of rows in files that may hold one given value.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    queries: tuple[Asked, ...]
    files: tuple[File, ...]
    tree: Branch | None
    levels: tuple[dict[str, int], ...]
    narrow: tuple[tuple[str, float], ...]
    decisions: tuple[tuple[str, str, str], ...]

    @property
    def rows_read(self) -> float:
        return sum(q.rows_read for q in self.queries) / max(1, len(self.queries))

    @property
    def matching(self) -> float | None:
        """The mean over the queries; None if it is not known of all."""
        known = [q.matching for q in self.queries if q.matching is not None]
        return sum(known) / len(known) if known and len(known) == len(self.queries) else None
