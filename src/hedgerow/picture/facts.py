"""The values that the picture of a table shows."""

from __future__ import annotations

from dataclasses import dataclass

from hedgerow.core.workload.score import Means


@dataclass(frozen=True)
class QueryReads:
    """A query with the share of the table's rows that it reads, the share that matches, and the files that it opens.

    `matching` is None if only Spark can evaluate it. `replica` is the copy of the table that it reads instead, if any.
    `means` says how the files are chosen.
    """

    text: str
    rows_read: float
    matching: float | None
    opened: frozenset[int]
    replica: str | None = None
    means: Means = "where"


@dataclass(frozen=True)
class File:
    """A file of the table."""

    name: str
    rows: int
    block: int


@dataclass(frozen=True)
class Branch:
    """A cut of the tree, or a block at its end; `queries` is the number of queries that open a file below it."""

    text: str
    rows: int
    queries: int
    yes: Branch | None = None
    no: Branch | None = None


@dataclass(frozen=True)
class Picture:
    """A table with its queries, files, tree and decisions.

    `levels`: the number of cuts on each column and of each advanced cut, for each level of the tree. `narrow`: for each
    column that queries filter on, the mean share of rows in files that may hold a given value.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    queries: tuple[QueryReads, ...]
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
        """The mean share of matching rows; None unless it is known for all queries."""
        shares = [q.matching for q in self.queries if q.matching is not None]
        return sum(shares) / len(shares) if shares and len(shares) == len(self.queries) else None
