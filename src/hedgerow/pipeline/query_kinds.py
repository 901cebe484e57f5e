"""The kinds of queries of a table: rows, files and seconds of a query, in the table as it is and in a layout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal, get_args

from hedgerow.core.learning.seconds import Estimate
from hedgerow.core.workload.queries import Query
from hedgerow.core.workload.score import Means, Score
from hedgerow.sql.query_outline import outline_of

Change = Literal["gains", "same", "slower"]
CHANGES: tuple[Change, ...] = ("gains", "same", "slower")
FIGURES = ("rows read", "files", "seconds", "not attached", "seen")  # the titles of a kind's figures
_FIGURES_IN_TEXT = (*FIGURES[:3], "of the rows if not attached", "for literals of the workload")
_NOTICED = 0.05  # a smaller change counts as none: estimates have errors
_PROMISED = 0.2  # a smaller change of measured seconds is not told: they vary by more from run to run


@dataclass(frozen=True)
class Scores:
    """The scores of queries with literals that the workload does not have.

    Args:
        now, then: in the table as it is, and in a layout.
        seen: in the layout with the literals of the workload; None if that is not known.
        detached: in the layout if no session is attached; None if that is not known.
    """

    now: Score
    then: Score
    seen: Score | None = None
    detached: Score | None = None


@dataclass(frozen=True)
class QueryKind:
    """Queries that differ in literals only, with their means in the table as it is ("now") and in a layout ("then").

    The literals are other ones than those of the workload, for an index may know these.

    Args:
        text: what one of the queries asks of the table.
        rows_now, rows_then: the share of the table's rows in what a query reads.
        files_now, files_then: the number of files that a query opens.
        seconds_now, seconds_then: as measured here; None if they cannot be.
        means: the ways in which queries of this kind then read less than all rows.
        rows_seen, files_seen: in the layout, for the literals of the workload; None if they are not known.
        rows_detached, files_detached: in the layout, if no session is attached, in files whose bounds let the query
            pass; None if they are not known.
        usual: the seconds at the usual speed of such a place. They decide what gains, so that the same table and
            queries always get the same advice. None if the table is small or cannot be timed: then rows decide.
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
    rows_seen: float | None = None
    files_seen: float | None = None
    rows_detached: float | None = None
    files_detached: float | None = None
    usual: Estimate | None = None

    @property
    def slower_by(self) -> float:
        """The relative change of a query's cost."""
        cost = self.cost
        return cost.then / cost.now - 1 if cost.now else float("inf") if cost.then else 0.0

    @property
    def cost(self) -> Estimate:
        """The usual seconds of a query, or the share of the rows that it reads, if these are not known."""
        return Estimate(self.rows_now, self.rows_then) if self.usual is None else self.usual

    @property
    def change(self) -> Change:
        """Whether it gains: at usual speeds, and as far as they are known, by the seconds measured here too."""
        measured = None if not self.seconds_now or self.seconds_then is None else self.seconds_then / self.seconds_now
        if self.slower_by > _NOTICED or (measured is not None and measured > 1 + _PROMISED):
            return "slower"
        gains = self.slower_by < -_NOTICED and (measured is None or measured < 1 - _PROMISED)
        return "gains" if gains else "same"

    def figures(self) -> tuple[str, ...]:
        """Return the figures as text: rows, files and seconds, each now and then; rows if not attached; rows if seen.

        A figure that is not known, or that says nothing new, is empty."""
        rows = f"{self.rows_now:.1%} -> {self.rows_then:.1%}"
        files = f"{self.files_now:,.1f} -> {self.files_then:,.1f}"
        is_timed = self.seconds_now is not None and self.seconds_then is not None
        seconds = f"{self.seconds_now:,.2f} -> {self.seconds_then:,.2f}" if is_timed else ""
        detached = "" if self.rows_detached is None else f"{self.rows_detached:.1%}"
        seen = "" if self.rows_seen is None else f"{self.rows_seen:.1%}"
        return rows, files, seconds, detached, "" if seen == f"{self.rows_then:.1%}" else seen

    def __str__(self) -> str:
        shown = (f"{value} {title}" for value, title in zip(self.figures(), _FIGURES_IN_TEXT, strict=True) if value)
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
    now, then = worst.cost.now, worst.cost.then
    cost = f"{now:.1%} -> {then:.1%} of the rows" if worst.usual is None else f"{now:,.2f} -> {then:,.2f} s, as usual"
    return f"slower than allow_slower permits{others}: {worst.text}: {cost}"


def in_groups(kinds: Iterable[QueryKind]) -> dict[Change, list[QueryKind]]:
    """Return the kinds by their change: gains first, then equal kinds, then losses. Groups are never empty."""
    groups = {change: [kind for kind in kinds if kind.change == change] for change in CHANGES}
    return {change: group for change, group in groups.items() if group}


def kinds_of(
    queries: Sequence[Query],
    table: str,
    scores: Scores,
    seconds: Sequence[Estimate] | None = None,
    usual: Sequence[Estimate] | None = None,
) -> tuple[QueryKind, ...]:
    """Return the kinds of the queries: the largest gain of all queries of a kind first, the largest loss last."""
    groups: dict[str, list[int]] = {}
    outlines = [outline_of(query, table) for query in queries]
    for i, outline in enumerate(outlines):
        groups.setdefault(outline.kind, []).append(i)

    def kind(places: Sequence[int]) -> QueryKind:
        timed = None if seconds is None else _mean(seconds, places)
        now, then = _reads(scores.now, places), _reads(scores.then, places)
        seen, detached = ((None, None) if s is None else _reads(s, places) for s in (scores.seen, scores.detached))
        return QueryKind(
            outlines[places[0]].text,
            round(sum(queries[i].weight for i in places)),
            rows_now=now[0],
            rows_then=then[0],
            files_now=now[1],
            files_then=then[1],
            seconds_now=None if timed is None else timed.now,
            seconds_then=None if timed is None else timed.then,
            means=_means(scores.then, places),
            rows_seen=seen[0],
            files_seen=seen[1],
            rows_detached=detached[0],
            files_detached=detached[1],
            usual=None if usual is None else _mean(usual, places),
        )

    return tuple(sorted(map(kind, groups.values()), key=_gain))


def _mean(estimates: Sequence[Estimate], places: Sequence[int]) -> Estimate:
    return Estimate(fmean(estimates[i].now for i in places), fmean(estimates[i].then for i in places))


def _reads(score: Score, places: Sequence[int]) -> tuple[float, float]:
    """Return the mean share of rows, and the mean number of files, of some queries of a score.

    A score of the workload's own queries has them once, not in rounds."""
    queries = [score.queries[i % len(score.queries)] for i in places]
    return fmean(q.rows_read for q in queries), round(score.blocks * fmean(q.blocks_read for q in queries), 2)


def _means(score: Score, places: Sequence[int]) -> tuple[Means, ...]:
    used = {score.queries[i].means for i in places if score.queries[i].rows_read < 1}
    return tuple(means for means in get_args(Means) if means in used)


def _gain(kind: QueryKind) -> tuple[int, float]:
    """Return a key that sorts kinds by group, and in a group by the savings of all queries of the kind."""
    return CHANGES.index(kind.change), (kind.cost.then - kind.cost.now) * kind.queries
