"""The result of `advise`: the proposals for a table, and whether one of them pays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.core.errors import HedgerowError
from hedgerow.core.html import html_table
from hedgerow.core.learning.seconds import WORTH_IT
from hedgerow.pipeline.estimate_seconds import SMALL_TABLE_BYTES
from hedgerow.pipeline.proposals import Proposal
from hedgerow.pipeline.query_kinds import FIGURES, QueryKind, in_groups

_AS_MANY, _IN_VAIN = 0.95, 2.0  # times the share of rows that queries read now
_BY_INDEX = (
    "its index gains this: queries read no fewer rows than now, but open fewer files "
    "(Hedgerow indexes only files that it has written)"
)


@dataclass(frozen=True)
class Advice:
    """The proposals for a table, the best first.

    Args:
        rows_read: the share of rows that a query reads in the table as it is.
        files_read: the share of its files that a query opens now.
        now: the seconds of a query in the table as it is.
        bound: the share of rows that queries need; no layout reads less.
        rewrite_seconds: the least and the most seconds that a rewrite takes; None if they cannot be estimated.
        rests_on: sentences about what the figures are computed from.
    """

    table: str
    rows: int
    bytes: int
    rows_read: float
    files_read: float
    now: float | None
    bound: float | None
    proposals: tuple[Proposal, ...]
    rewrite_seconds: tuple[float, float] | None
    rests_on: tuple[str, ...]

    @property
    def best(self) -> Proposal | None:
        """The proposal to take; None: leave the table as it is."""
        first = self.proposals[0]
        if first.score is None or first.why_not is not None:
            return None
        if first.usual is not None:
            return first if first.usual.pays else None
        return first if first.score.rows_read <= WORTH_IT * self.rows_read and not self.is_small else None

    @property
    def is_small(self) -> bool:
        """True if Spark reads all of the table as fast as a part of it."""
        return self.bytes < SMALL_TABLE_BYTES

    @property
    def kinds(self) -> tuple[QueryKind, ...]:
        """The kinds of queries in the first proposal: gains first, then equal kinds, then losses."""
        return self.proposals[0].kinds

    @property
    def gains_by_index(self) -> bool:
        """True if the best proposal only saves the opening of files: queries read as many rows as now.

        Its index skips these files, wherever the rows lie. Without one, Spark reads their footers first."""
        if self.best is None or self.best.score is None:
            return False
        return self.best.score.rows_read >= _AS_MANY * self.rows_read and self.files_read >= _IN_VAIN * self.rows_read

    @property
    def pays_back_after(self) -> tuple[int, int] | None:
        """The least and the most queries after which a rewrite in the best proposal has paid.

        None if they are not known, or if no gain was measured here."""
        if self.best is None or self.best.estimate is None or self.rewrite_seconds is None:
            return None
        saved, (least, most) = self.best.estimate.now - self.best.estimate.then, self.rewrite_seconds
        return (int(least / saved) + 1, int(most / saved) + 1) if saved > 0 else None

    def __str__(self) -> str:
        now = f"{self.table}: {self.rows_read:.1%} of {self.rows:,} rows are read now"
        kinds = []
        for change, group in in_groups(self.kinds).items():
            kinds.append(f"{change} with {self.proposals[0].name}:")
            kinds += [f"  {kind}" for kind in group]
        return "\n".join([now, *map(str, self.proposals), *kinds, self.sentence, *self.rests_on])

    def _repr_html_(self) -> str:
        rows = [(o.name, *o.figures(), o.why_not) for o in self.proposals]
        now = "as it is", f"{self.rows_read:.1%}", None, None if self.now is None else f"{self.now:.2f}", None
        table = html_table([now, *rows], ["layout", "rows read", "files", "seconds", ""])
        kinds = [(kind.text, kind.change, kind.queries, *kind.figures()) for kind in self.kinds]
        listed = html_table(kinds, ["kind of query", f"with {self.proposals[0].name}", "queries", *FIGURES])
        return f"{table}{listed}{html_table([('advice', self.sentence)])}"

    @property
    def sentence(self) -> str:
        """The advice itself."""
        best, first = self.best, self.proposals[0]
        if best is None:
            if self.is_small:
                return "leave it as it is: Spark reads so small a table in no time"
            if first.why_not is not None:
                return f"leave it as it is, or allow slower queries: {first.name} makes queries {first.why_not}"
            slower = first.usual is not None and first.usual.then > first.usual.now
            return f"leave it as it is: {first.name} is the best, and {'is slower' if slower else 'saves too little'}"
        only = f"; {_BY_INDEX}" if self.gains_by_index else ""
        if self.rewrite_seconds is None or self.pays_back_after is None:
            return f"take {best.name}{only}"
        seconds, queries = _range(*self.rewrite_seconds), _range(*self.pays_back_after)
        return f"take {best.name}: the rewrite takes {seconds} s, which {queries} queries save{only}"

    def save(self, path: str | Path) -> None:
        """Save the best layout as a plan for `apply`. It also fits the rows that the table gets later."""
        if self.best is None or self.best.learned is None:
            raise HedgerowError(f"there is no plan to save: {self.sentence}")
        self.best.learned.save(path)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the layouts."""
        return {
            "table": self.table,
            "rows": self.rows,
            "bytes": self.bytes,
            "rows_read": self.rows_read,
            "files_read": self.files_read,
            "seconds": self.now,
            "bound": self.bound,
            "advice": self.sentence,
            "best": None if self.best is None else self.best.name,
            "proposals": [proposal.to_dict() for proposal in self.proposals],
            "rewrite_seconds": self.rewrite_seconds,
            "pays_back_after": self.pays_back_after,
            "kinds": [kind.to_dict() for kind in self.kinds],
            "rests_on": list(self.rests_on),
        }


def _range(least: float, most: float) -> str:
    """
    >>> _range(900.2, 3000), _range(1, 1)
    ('900 to 3,000', '1')
    """
    low, high = f"{least:,.0f}", f"{most:,.0f}"
    return low if low == high else f"{low} to {high}"
