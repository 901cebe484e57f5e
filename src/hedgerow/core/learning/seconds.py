"""Estimates the seconds of a query from the files that it opens and the bytes that it reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.core.learning.score import QueryScore, Score

WORTH_IT = 0.8  # a layout pays if the queries take at most this share of their time


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds, measured where the queries run: of a query that reads nothing, of each file, and of each byte.

    `unskipped`: the share of a query's time that is left when Spark skips what it can by itself, as the table is now.
    """

    query: float
    file: float
    byte: float
    unskipped: float = 1.0

    def seconds(self, files: float, size: float) -> float:
        return self.query + self.file * files + self.byte * size


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean seconds of the workload's queries: of the table as it is, and in the layout; told from `speed`."""

    now: float
    then: float
    speed: Speed

    @property
    def pays(self) -> bool:
        return self.then <= WORTH_IT * self.now

    def __str__(self) -> str:
        return f"a query takes an estimated {self.now:.2f} s as the table is, and {self.then:.2f} s in this layout"


def estimate(score: Score, weights: list[float], speed: Speed, files: int, size: float) -> Estimate:
    """From the score of a layout, for a table that has these files and so many bytes in them now."""
    share = np.array(weights) / sum(weights)
    each = estimates(score, speed, files, size)
    return Estimate(float(share @ [e.now for e in each]), float(share @ [e.then for e in each]), speed)


def estimates(score: Score, speed: Speed, files: int, size: float) -> list[Estimate]:
    """The same of each query."""
    return [
        Estimate(
            speed.seconds(files, size * _width(q) * speed.unskipped),
            speed.seconds(q.blocks_read * score.blocks, size * _left(q)),
            speed,
        )
        for q in score.queries
    ]


def _width(query: QueryScore) -> float:
    """The share of the table's bytes in the columns that the query reads."""
    return query.bytes_read / query.rows_read if query.rows_read else 1.0


def _left(query: QueryScore) -> float:
    return query.bytes_read if query.bytes_left is None else query.bytes_left
