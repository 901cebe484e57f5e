"""The shares of a table that the queries of a workload read: rows, blocks and bytes, and the rows that match."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.html import html_table
from hedgerow.core.workload.queries import Query

Means: TypeAlias = Literal["where", "look-up", "top-k", "limit", "aggregates"]  # how the files of a query are chosen


@dataclass(frozen=True, slots=True)
class QueryScore:
    """Fractions of the table that a query reads.

    `selectivity`: the rows that it has to read in any layout; None if only Spark could evaluate the predicate.
    `bytes_left`: the bytes that remain after Parquet has skipped inside the files; None if unknown. `means`: how the
    files are chosen. `until_limit`: the share of the opened rows that is read before a LIMIT has its rows.
    """

    id: str
    rows_read: float
    blocks_read: float
    bytes_read: float
    selectivity: float | None
    bytes_left: float | None = None
    means: Means = "where"
    until_limit: float = 1.0

    @property
    def bytes_after_skipping(self) -> float:
        """The bytes that are left as far as it is known; else all that it reads."""
        return self.bytes_read if self.bytes_left is None else self.bytes_left


@dataclass(frozen=True)
class Score:
    """Weighted means over the queries, as fractions of the table.

    `selectivity` is the mean over the queries whose selectivity is known. `seconds` and `seconds_now` are estimates for
    a query in the layout and in the table as it is; None without a Spark session.
    """

    rows_read: float
    blocks_read: float
    bytes_read: float
    selectivity: float | None
    blocks: int
    queries: tuple[QueryScore, ...]
    seconds: float | None = None
    seconds_now: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        return "\n".join(f"{name:<24}{value}" for name, value in self._shown())

    def _repr_html_(self) -> str:
        return html_table(self._shown())

    def _shown(self) -> list[tuple[str, str]]:
        shares = [("rows read", self.rows_read), ("blocks read", self.blocks_read), ("bytes read", self.bytes_read)]
        if self.selectivity is not None:
            shares.append(("selectivity (the bound)", self.selectivity))
        shown = [(name, f"{100 * value:8.2f} %") for name, value in shares]
        if self.seconds is not None and self.seconds_now is not None:
            shown.append(("seconds a query", f"{self.seconds:8.2f}   now {self.seconds_now:.2f}, both estimated"))
        if self.by_means:
            shown.append(("queries by", self.by_means))
        return shown

    @property
    def by_means(self) -> str:
        """How many queries choose their files by which means; empty if all do by WHERE.

        >>> shares = (0.1, 0.1, 0.1, None, None)
        >>> Score.mean([QueryScore("a", *shares), QueryScore("b", *shares, "top-k")], [1, 1], 9).by_means
        'where 1, top-k 1'
        """
        used = Counter(q.means for q in self.queries)
        listed = ", ".join(f"{name} {used[name]:,}" for name in get_args(Means) if used[name])
        return "" if used.keys() <= {"where"} else listed

    @staticmethod
    def of_everything(queries: Sequence[Query], blocks: int) -> Score:
        """Return the score of queries that read the whole table."""
        return Score.mean([QueryScore(q.id, 1.0, 1.0, 1.0, None) for q in queries], [q.weight for q in queries], blocks)

    @staticmethod
    def of_copies(copies: Sequence[Score], weights: Sequence[float]) -> Score:
        """Return the score of queries that each read the copy of the table with the fewest bytes to read.

        `copies`: scores of the same queries. The first copy is the table itself: only it serves queries that more than
        WHERE decides."""
        table = copies[0]

        def in_table(q: QueryScore, copy: Score) -> QueryScore:
            return replace(q, blocks_read=q.blocks_read * copy.blocks / max(1, table.blocks))

        best = []
        for scores in zip(*(copy.queries for copy in copies), strict=True):
            can_choose = scores[0].means in ("where", "look-up")
            choices = [in_table(q, copy) for q, copy in zip(scores, copies, strict=True)][: None if can_choose else 1]
            best.append(min(choices, key=lambda q: q.bytes_read))
        return Score.mean(best, weights, table.blocks)

    @staticmethod
    def mean(queries: Sequence[QueryScore], weights: Sequence[float], blocks: int) -> Score:
        if not queries:
            raise LayoutError("the workload has no query for this table, so there is nothing to score")
        w = np.array(weights) / sum(weights)

        selectivities = [
            (weight, q.selectivity) for weight, q in zip(weights, queries, strict=True) if q.selectivity is not None
        ]
        known_weight = sum(weight for weight, _ in selectivities)

        def mean(values: Iterable[float]) -> float:
            return float(w @ np.fromiter(values, float, len(queries)))

        return Score(
            mean(q.rows_read for q in queries),
            mean(q.blocks_read for q in queries),
            mean(q.bytes_read for q in queries),
            sum(weight * s for weight, s in selectivities) / known_weight if selectivities else None,
            blocks,
            tuple(queries),
        )
