"""Estimated seconds: of a query, from the files that it opens and the bytes that it reads; and of a rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.workload.score import QueryScore, Score

WORTH_IT = 0.8  # a layout pays if the queries take at most this share of their time


@dataclass(frozen=True, slots=True)
class Speed:
    """Measured seconds of a query that reads nothing, of each file that it opens, and of each byte that it reads.

    `unskipped`: the share of the bytes that are left when Spark skips what it can by itself, as the table is now.
    `first`: the seconds that the first `first_bytes` take in addition, until Java has compiled a new query's code.
    `of`: the speed of some queries, by their ids: a sum has one stage more than rows that are returned, a file takes
    longer to open for many columns, and a map takes longer to read than numbers of its size.
    """

    query: float
    file: float
    byte: float
    unskipped: float = 1.0
    first: float = 0.0
    first_bytes: float = 1.0
    of: Mapping[str, Speed] = field(default_factory=dict)

    def of_query(self, query: str) -> Speed:
        return self.of.get(query, self)

    def seconds(self, query: str, files: float, size: float) -> float:
        """Return the seconds of a query that opens `files` files and reads `size` bytes."""
        own = self.of_query(query)
        return own.query + own.file * files + own.reading(size)

    def reading(self, size: float) -> float:
        """Return the seconds of reading so many bytes."""
        return self.byte * size + self.first * min(1.0, size / self.first_bytes)

    def read_in(self, seconds: float) -> float:
        """Return how many bytes are read in so many seconds."""
        beyond = seconds - self.reading(self.first_bytes)
        if beyond < 0:
            return seconds / (self.byte + self.first / self.first_bytes)
        return self.first_bytes + beyond / self.byte if self.byte else float("inf")

    def now(self, query: str, files: float, size: float, opened: float = 1.0, until_limit: float = 1.0) -> float:
        """Return the seconds of a query on the files as they are now; `size` are the bytes of its columns.

        `opened`: the share of the rows in the files that it opens. What Spark skips by itself lies mostly in the other
        files, so the larger saving counts, not both. `until_limit`: see `QueryScore`."""
        left = until_limit * min(opened, self.of_query(query).unskipped)
        return self.seconds(query, files, left * size)

    def times(self, factor: float) -> Speed:
        """Return the speed if everything takes `factor` times as long."""
        return Speed(
            factor * self.query,
            factor * self.file,
            factor * self.byte,
            self.unskipped,
            factor * self.first,
            self.first_bytes,
            {query: own.times(factor) for query, own in self.of.items()},
        )


@dataclass(frozen=True, slots=True)
class RewriteCost:
    """The seconds of a rewrite: a fixed part, one for each byte, and one for each byte and item in its index."""

    fixed: float
    byte: float
    item: float = 0.0  # for each byte

    def seconds(self, size: float, items: int) -> float:
        return self.fixed + size * self.rate(items)

    def rate(self, items: int) -> float:
        """Return the seconds for each byte."""
        return self.byte + items * self.item

    def __str__(self) -> str:
        each = f"{self.byte * (1 << 30):,.1f} s for each GB"
        return f"{self.fixed:,.1f} s, {each}, and {self.item * 10 * (1 << 30):,.2f} s more for each ten conditions"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean seconds of the workload's queries: of the table as it is, and in the layout."""

    now: float
    then: float

    @property
    def pays(self) -> bool:
        return self.then <= WORTH_IT * self.now

    def __str__(self) -> str:
        return f"a query takes an estimated {self.now:.2f} s as the table is, and {self.then:.2f} s in this layout"


def estimate(score: Score, weights: list[float], speed: Speed, now: Score, size: float) -> Estimate:
    """Estimate the mean seconds of the scored queries, for a table of `size` bytes; `now`: its score as it is."""
    share = np.array(weights) / sum(weights)
    each = estimates(score, speed, now, size)
    return Estimate(float(share @ [e.now for e in each]), float(share @ [e.then for e in each]))


def estimates(score: Score, speed: Speed, now: Score, size: float) -> list[Estimate]:
    """Estimate the seconds of each query."""
    return [
        Estimate(
            speed.now(q.id, before.blocks_read * now.blocks, size * _width(q), before.rows_read, q.until_limit),
            speed.seconds(q.id, q.blocks_read * score.blocks, size * q.bytes_after_skipping * q.until_limit),
        )
        for q, before in zip(score.queries, now.queries, strict=True)
    ]


def _width(query: QueryScore) -> float:
    """Return the share of the table's bytes in the columns that the query reads."""
    return query.bytes_read / query.rows_read if query.rows_read else 1.0
