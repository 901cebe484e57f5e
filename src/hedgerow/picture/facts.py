"""The values that the picture of a table shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal, TypeVar

from hedgerow.core.workload.score import Means
from hedgerow.picture.file_map import FileMap

MOST = 0.8  # a share of rows
PRICED_QUERIES = 1000  # what one query costs is too little to read
Known = Literal["measured", "estimated", "partly measured"]
T = TypeVar("T")


def evenly_spaced(items: Sequence[T], limit: int) -> list[T]:
    """Return at most `limit` of the items, at equal distances."""
    return [items[i * len(items) // limit] for i in range(limit)] if len(items) > limit else list(items)


@dataclass(frozen=True)
class Change:
    """A mean figure of some queries before the table had its layout, and now; None where it is not known."""

    before: float | None = None
    now: float | None = None
    known: Known = "estimated"

    @staticmethod
    def mean(changes: Sequence[Change]) -> Change:
        return _joined(fmean, changes)

    def times(self, factor: float) -> Change:
        before, now = (None if figure is None else factor * figure for figure in (self.before, self.now))
        return Change(before, now, self.known)


def _joined(of: Callable[[list[float]], float], changes: Sequence[Change]) -> Change:
    """Return one change made of several; a figure is not known if it is not known of one of them."""

    def all_of(figures: list[float | None]) -> float | None:
        known = [figure for figure in figures if figure is not None]
        return of(known) if len(known) == len(figures) else None

    ways = {change.known for change in changes}
    known: Known = ways.pop() if len(ways) == 1 else "partly measured"
    return Change(all_of([c.before for c in changes]), all_of([c.now for c in changes]), known)


@dataclass(frozen=True)
class Prices:
    """The price of an hour of the cluster, and of a terabyte that queries read; None where there is none."""

    hour: float | None = None
    terabyte: float | None = None

    @property
    def are_given(self) -> bool:
        return self.hour is not None or self.terabyte is not None

    def of(self, seconds: Change, size: Change) -> Change:
        """Return the price of `PRICED_QUERIES` queries, from the seconds and bytes of one."""
        units = ((seconds, self.hour, 3600), (size, self.terabyte, 1e12))
        priced = [change.times(PRICED_QUERIES * price / unit) for change, price, unit in units if price is not None]
        return _joined(sum, priced) if priced else Change()


@dataclass(frozen=True)
class QueryReads:
    """A query with the share of the table's rows that it reads, the share that matches, and the files that it opens.

    `matching` is None if only Spark can evaluate it. `replica` is the copy of the table that it reads instead, if any.
    `means` says how the files are chosen. Queries of one `kind` differ in literals only. `undecided`: the parts of the
    condition that the index has no statistics for. `seconds` and `bytes`, those of the columns that it reads, are means
    over queries of its kind where the log knows them.
    """

    text: str
    rows_read: float
    matching: float | None
    opened: frozenset[int]
    replica: str | None = None
    means: Means = "where"
    kind: str = ""
    undecided: tuple[str, ...] = ()
    seconds: Change = Change()
    bytes: Change = Change()

    @property
    def is_compared(self) -> bool:
        """True if its seconds and bytes are known for both times."""
        return None not in (self.seconds.before, self.seconds.now, self.bytes.before, self.bytes.now)


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
    def seconds(self) -> Change:
        return Change.mean([query.seconds for query in self.queries])

    @property
    def bytes(self) -> Change:
        return Change.mean([query.bytes for query in self.queries])

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

    def to_dict(self, prices: Prices) -> dict[str, Any]:
        figures = {"files": self.files, "rows_read": self.rows_read, "matching": self.matching, "means": self.means}
        changes = {"seconds": self.seconds, "bytes": self.bytes, "price": prices.of(self.seconds, self.bytes)}
        compared = {name: asdict(change) for name, change in changes.items()}
        texts = {"text": self.text, "queries": len(self.queries)}
        return {**texts, **figures, **compared, "why_not_fewer": self.why_not_fewer}


@dataclass(frozen=True)
class File:
    """A file of the table."""

    name: str
    rows: int
    block: int


@dataclass(frozen=True)
class Askers:
    """Some queries: their number, and one of each kind."""

    queries: int = 0
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Branch:
    """A cut of the tree, or a block at its end.

    `askers`: the queries that open a file below it. `yes_only`, `no_only`: those of a cut that open none on its other
    side; `both`: those that do.
    """

    text: str
    rows: int
    askers: Askers
    yes: Branch | None = None
    no: Branch | None = None
    yes_only: Askers = Askers()
    no_only: Askers = Askers()
    both: Askers = Askers()


@dataclass(frozen=True)
class Week:
    """The logged queries of a week that begins on a Monday, and what the autopilot did in it.

    `seconds`: of the `timed` queries together. `actions`: those that were carried out. `search_seconds` and
    `rewrite_seconds` are measured, too.
    """

    monday: str
    queries: int = 0
    timed: int = 0
    seconds: float = 0.0
    actions: tuple[str, ...] = ()
    search_seconds: float = 0.0
    rewrite_seconds: float = 0.0

    @property
    def autopilot_seconds(self) -> float:
        return self.search_seconds + self.rewrite_seconds


@dataclass(frozen=True)
class CurvePoint:
    """A point of the learning curve: the blocks that the first levels of the tree make, and what they let queries read.

    `read` is the mean share of rows for the queries, `unseen` for queries with other literals; None if there are none.
    """

    levels: int
    blocks: int
    read: float
    unseen: float | None


@dataclass(frozen=True)
class Picture:
    """A table with its queries, files, tree and decisions.

    `levels`: the number of cuts on each column and of each advanced cut, for each level of the tree. `narrow`: for each
    column that queries filter on, the mean share of rows in files that may hold a given value. `maps`: the files in the
    plane of two of these columns. `curve`: the shares of rows read as the tree grows.
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
    curve: tuple[CurvePoint, ...] = ()
    weeks: tuple[Week, ...] = ()
    prices: Prices = Prices()

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
