"""Estimate what a workload would read under a layout: rows, blocks and bytes of each query, and the rows that match."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.html import html_table
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import VirtualBlocks
from hedgerow.core.predicates.nodes import Predicate, columns_of
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.pruning.block_stats import Floats
from hedgerow.core.workload.queries import Query


@dataclass(frozen=True, slots=True)
class QueryScore:
    """Fractions of the table that a query reads; `selectivity` is None if only Spark could evaluate the predicate.

    `bytes_left`: of the bytes, those in parts of files that Parquet cannot skip by itself; None if that is not known.
    """

    id: str
    rows_read: float
    blocks_read: float
    bytes_read: float
    selectivity: float | None
    bytes_left: float | None = None


@dataclass(frozen=True)
class Score:
    """Weighted means over the queries, as fractions of the table; `selectivity` over the queries with a known one.

    `seconds`, `seconds_now`: of a query in the layout and in the table as it is, estimated, where Spark can be asked.
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
        shares = [
            ("rows read", self.rows_read),
            ("blocks read", self.blocks_read),
            ("bytes read", self.bytes_read),
        ]
        if self.selectivity is not None:
            shares.append(("selectivity (the bound)", self.selectivity))
        shown = [(name, f"{100 * value:8.2f} %") for name, value in shares]
        if self.seconds is not None and self.seconds_now is not None:
            shown.append(("seconds a query", f"{self.seconds:8.2f}   now {self.seconds_now:.2f}, both estimated"))
        return shown

    @staticmethod
    def mean(queries: Sequence[QueryScore], weights: Sequence[float], blocks: int) -> Score:
        if not queries:
            raise LayoutError("the workload has no query for this table, so there is nothing to score")
        w = np.array(weights) / sum(weights)

        known = [
            (weight, q.selectivity) for weight, q in zip(weights, queries, strict=True) if q.selectivity is not None
        ]

        def over(values: Iterable[float]) -> float:
            return float(w @ np.fromiter(values, float, len(queries)))

        return Score(
            over(q.rows_read for q in queries),
            over(q.blocks_read for q in queries),
            over(q.bytes_read for q in queries),
            sum(weight * s for weight, s in known) / sum(weight for weight, _ in known) if known else None,
            blocks,
            tuple(queries),
        )


def score(layout: Layout, sample: Sample, queries: Sequence[Query], table: str) -> Score:
    """Score a layout on virtual blocks made of the sample's rows; nothing is written."""
    if isinstance(layout, OverlapLayout):
        return score_index(layout.index(sample.rows), sample, queries, table)
    blocks = VirtualBlocks.of(layout, sample)
    return score_index(blocks.index, sample, queries, table, blocks.chances)


def score_index(
    index: BlockIndex,
    sample: Sample,
    queries: Sequence[Query],
    table: str,
    chances: Callable[[Predicate], Floats] | None = None,
) -> Score:
    """Score the blocks that the queries open; the sample provides column widths and the share of rows that match.

    `chances`: how likely a query opens each block, where the index knows only the sample's rows."""
    rows = index.blocks.rows
    scores = []
    for query in queries:
        p = query.predicate(table)
        opened = index.to_open(p).astype(float) if chances is None else chances(p)
        read = float(opened @ rows / max(1, rows[index.home_blocks].sum()))
        width = _width(sample, query.columns(table), p)
        blocks = float(opened.sum() / max(1, (rows > 0).sum()))
        scores.append(QueryScore(query.id, read, blocks, read * width, sample.selectivity(p)))
    return Score.mean(scores, [q.weight for q in queries], int((rows > 0).sum()))


def top(name: str) -> str:
    """The top-level column of a dotted name, as SQL.

    >>> top("address.city"), top("`a.b`.c"), top("user")
    ('address', '`a.b`', '`user`')
    """
    return name[: name.index("`", 1) + 1] if name.startswith("`") else quote_name(name.split(".")[0])


def read_columns(reads: Sequence[str] | None, p: Predicate) -> list[str] | None:
    """The top-level columns that a query reads, those of its condition included; None: all."""
    return None if reads is None else sorted({*map(top, reads), *(quote_name(c.path[0]) for c in columns_of(p))})


def _width(sample: Sample, reads: tuple[str, ...] | None, p: Predicate) -> float:
    """The share of the table's bytes in the columns that the query reads."""
    total, names = sum(sample.width.values()), read_columns(reads, p)
    if names is None or not total:
        return 1.0
    lower = {name.lower() for name in names}
    return sum(w for name, w in sample.width.items() if name.lower() in lower) / total
