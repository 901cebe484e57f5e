"""The values that the picture of a table shows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hedgerow.core.workload.score import Means
from hedgerow.picture.file_map import FileMap

MOST = 0.8  # a share of rows


@dataclass(frozen=True)
class QueryReads:
    """A query with the share of the table's rows that it reads, the share that matches, and the files that it opens.

    `matching` is None if only Spark can evaluate it. `replica` is the copy of the table that it reads instead, if any.
    `means` says how the files are chosen. Queries of one `kind` differ in literals only. `undecided`: the parts of the
    condition that the index has no statistics for.
    """

    text: str
    rows_read: float
    matching: float | None
    opened: frozenset[int]
    replica: str | None = None
    means: Means = "where"
    kind: str = ""
    undecided: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """Queries that differ in literals only, with means over them."""

    queries: tuple[QueryReads, ...]

    @property
    def text(self) -> str:
        return self.queries[0].text

    @property
    def rows_read(self) -> float:
        return fmean(query.rows_read for query in self.queries)

    @property
    def files(self) -> float:
        return fmean(len(query.opened) for query in self.queries)

    @property
    def matching(self) -> float | None:
        """The share of matching rows; None unless it is known for all queries."""
        shares = [query.matching for query in self.queries if query.matching is not None]
        return fmean(shares) if len(shares) == len(self.queries) else None

    @property
    def means(self) -> tuple[Means, ...]:
        return tuple(dict.fromkeys(query.means for query in self.queries if query.rows_read < 1))

    @property
    def why_not_fewer(self) -> str:
        """The reason why queries of this kind read most of the table; empty if they do not."""
        undecided = dict.fromkeys(part for query in self.queries for part in query.undecided)
        if self.rows_read < MOST:
            return ""
        if self.matching is not None and self.matching >= MOST * self.rows_read:
            return "nearly all rows match"
        if undecided:
            return f"the index has no statistics for {', '.join(undecided)}"
        return "matching rows are in most files: no layout was learned for this kind, or none can serve all kinds"

    def to_dict(self) -> dict[str, Any]:
        figures = {"files": self.files, "rows_read": self.rows_read, "matching": self.matching, "means": self.means}
        return {"text": self.text, "queries": len(self.queries), **figures, "why_not_fewer": self.why_not_fewer}


@dataclass(frozen=True)
class File:
    """A file of the table."""

    name: str
    rows: int
    block: int


@dataclass(frozen=True)
class Branch:
    """A cut of the tree, or a block at its end.

    `queries`: the number of queries that open a file below it. `askers`: of a block, such a query of each kind.
    """

    text: str
    rows: int
    queries: int
    yes: Branch | None = None
    no: Branch | None = None
    askers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A table with its queries, files, tree and decisions.

    `levels`: the number of cuts on each column and of each advanced cut, for each level of the tree. `narrow`: for each
    column that queries filter on, the mean share of rows in files that may hold a given value. `maps`: the files in the
    plane of two of these columns.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    queries: tuple[QueryReads, ...]
    files: tuple[File, ...]
    tree: Branch | None
    levels: tuple[dict[str, int], ...]
    narrow: tuple[tuple[str, float], ...]
    decisions: tuple[tuple[str, str, str], ...]
    maps: tuple[FileMap, ...] = ()

    @property
    def all_queries(self) -> Kind | None:
        """All queries as one kind; None if there are none."""
        return Kind(self.queries) if self.queries else None

    @property
    def kinds(self) -> list[Kind]:
        """The queries by their kinds, the one with the most queries first."""
        by_kind: dict[str, list[QueryReads]] = {}
        for query in self.queries:
            by_kind.setdefault(query.kind or query.text, []).append(query)
        return sorted((Kind(tuple(alike)) for alike in by_kind.values()), key=lambda kind: -len(kind.queries))
