"""The kinds of queries of a table: rows, files and seconds of a query, in the table as it is and in a layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Means, QueryScore, Score
from hedgerow.sql.query_outline import outline_of

Change = Literal["gains", "same", "slower"]
CHANGES: tuple[Change, ...] = ("gains", "same", "slower")
FIGURES = ("rows read", "files", "seconds")  # the titles of a kind's figures
_NOTICED = 0.05  # a smaller change counts as none: estimates have errors


@dataclass(frozen=True)
class QueryKind:
    """Queries that differ in literals only, with their means in the table as it is ("now") and in a layout ("then").

    Args:
        text: what one of the queries asks of the table.
        rows_now, rows_then: the share of the table's rows in what a query reads.
        files_now, files_then: the number of files that a query opens.
        seconds_now, seconds_then: None if they cannot be measured.
        means: the ways in which a query of this kind may read less.
    """

    text: str
    queries: int
    rows_now: float
    rows_then: float
    files_now: float
    files_then: float
    seconds_now: float | None = None
    seconds_then: float | None = None
    means: tuple[Means, ...] = ()

    @property
    def slower_by(self) -> float:
        """The relative change of a query's seconds; of the rows that it reads, if no seconds are known."""
        if self.seconds_now is None or self.seconds_then is None:
            now, then = self.rows_now, self.rows_then
        else:
            now, then = self.seconds_now, self.seconds_then
        return then / now - 1 if now else float("inf") if then else 0.0

    @property
    def change(self) -> Change:
        return "slower" if self.slower_by > _NOTICED else "gains" if self.slower_by < -_NOTICED else "same"

    def figures(self) -> tuple[str, str, str]:
        """Return the rows that a query reads, the files that it opens and its seconds, each now and then, as text."""
        rows = f"{self.rows_now:.1%} -> {self.rows_then:.1%}"
        files = f"{self.files_now:,.1f} -> {self.files_then:,.1f}"
        if self.seconds_now is None or self.seconds_then is None:
            return rows, files, ""
        return rows, files, f"{self.seconds_now:,.2f} -> {self.seconds_then:,.2f}"

    def __str__(self) -> str:
        shown = (f"{value} {title}" for value, title in zip(self.figures(), FIGURES, strict=True) if value)
        return f"{self.text}: {', '.join(shown)}" + (f", by {', '.join(self.means)}" if self.means else "")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "change": self.change}


def why_refused(kinds: Sequence[QueryKind], allow_slower: float) -> str | None:
    """Return why a layout is refused that makes a kind of query slower than is allowed; None if none is."""
    worst = max(kinds, key=lambda kind: kind.slower_by, default=None)
    if worst is None or worst.slower_by <= allow_slower:
        return None
    count = sum(kind.slower_by > allow_slower for kind in kinds)
    others = f" (and {count - 1} more)" if count > 1 else ""
    return f"slower than allowed{others}: {worst}"


def in_groups(kinds: Iterable[QueryKind]) -> dict[Change, list[QueryKind]]:
    """Return the kinds by their change: gains first, then equal kinds, then losses. Groups are never empty."""
    groups = {change: [kind for kind in kinds if kind.change == change] for change in CHANGES}
    return {change: group for change, group in groups.items() if group}


def kinds_of(
    queries: Sequence[Query],
    table: str,
    now: Score,
    then: Score,
    seconds: Sequence[Estimate] | None,
    means: Sequence[tuple[Means, ...]],
) -> tuple[QueryKind, ...]:
    """Return the kinds of the queries: the largest gain of all queries of a kind first, the largest loss last."""
    groups: dict[str, list[int]] = {}
    outlines = [outline_of(query, table) for query in queries]
    for i, outline in enumerate(outlines):
        groups.setdefault(outline.kind, []).append(i)

    def kind(places: Sequence[int]) -> QueryKind:
        before, after = ([score.queries[i] for i in places] for score in (now, then))
        timed = None if seconds is None else [seconds[i] for i in places]
        return QueryKind(
            outlines[places[0]].text,
            round(sum(queries[i].weight for i in places)),
            fmean(q.rows_read for q in before),
            fmean(q.rows_read for q in after),
            _files(before, now.blocks),
            _files(after, then.blocks),
            None if timed is None else fmean(e.now for e in timed),
            None if timed is None else fmean(e.then for e in timed),
            means[places[0]],
        )

    return tuple(sorted(map(kind, groups.values()), key=_gain))


def _files(scores: Sequence[QueryScore], files: int) -> float:
    return round(files * fmean(q.blocks_read for q in scores), 2)


def _gain(kind: QueryKind) -> tuple[int, float]:
    """Return a key that sorts kinds by group, and in a group by the savings of all queries of the kind."""
    rows, seconds = kind.rows_then - kind.rows_now, (kind.seconds_then or 0.0) - (kind.seconds_now or 0.0)
    return CHANGES.index(kind.change), (rows if kind.seconds_now is None else seconds) * kind.queries
