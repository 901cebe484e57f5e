"""Inserts and scans in the order of time: the evaluation of the thesis on self-organizing layouts (6.1), in rows.

Each day of a crash-report log its rows are inserted, then the day's queries scan all rows so far. The cost is counted
in rows: those that scans read, those inserted, and those that rewrites read and write again.

    nothing            rows stay in the blocks in which they came
    once               half-way all rows are rewritten for the queries so far; later ones stay as they came
    every third day    from half-way on, the rows inserted since the last rewrite are rewritten in a new layout

The thesis measures time on a cluster, and its automatic way chooses the time of a rewrite; this suite does not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.data.errorlog_data import EXTERNAL, QUERIED_COLUMNS, table
from bench.data.errorlog_queries import conditions
from bench.memory import InMemory, bound, fitted, index_of, predicates_of, problem_of
from bench.options import Case, Options
from bench.record import line, progress
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import index_of_assignment
from hedgerow.core.predicates.nodes import Predicate

ROWS = {"quick": 15_000, "full": 1_000_000}
BLOCK_ROWS = {"quick": 100, "full": 1_000}
QUERIES = {"quick": 4, "full": 40}  # a day
DAYS, HALF, OFTEN = EXTERNAL.days, EXTERNAL.days // 2, 3
ONCE, AGAIN = "once", "every third day"
NOTHING: Case = ("none", {})
CASES: tuple[Case, ...] = (
    ("zorder", {"when": ONCE}),
    ("qdtree", {"when": ONCE}),
    ("qdtree", {"when": AGAIN}),
)


@dataclass(frozen=True)
class Day:
    """A day: after its inserts the table has the rows up to number `end`; then its queries run."""

    end: int
    texts: list[str]
    predicates: tuple[Predicate, ...]


@dataclass
class Table:
    """The rows up to number `until`, and the indexes of their blocks.

    `late` indexes the rows from number `since`, which were not rewritten yet. `touched` counts rows written or moved.
    """

    rows: pa.Table
    block_rows: int
    parts: list[BlockIndex] = field(default_factory=list)
    late: list[BlockIndex] = field(default_factory=list)
    since: int = 0
    until: int = 0
    touched: int = 0

    def insert(self, end: int) -> None:
        some = Sample.of_table(self.rows.slice(self.until, end - self.until))
        block = np.arange(len(some)) // self.block_rows
        self.late.append(index_of_assignment(block, int(block[-1]) + 1, some))
        self.touched += len(some)
        self.until = end

    def scan(self, p: Predicate) -> int:
        return sum(int(index.blocks.rows[index.to_open(p)].sum()) for index in (*self.parts, *self.late))

    def rewrite(self, texts: Sequence[str], case: Case, seed: int) -> None:
        """Rewrite the rows inserted since the last rewrite, in a layout learned from the queries so far."""
        some = self.rows.slice(self.since, self.until - self.since)
        queries = bound(texts, some)
        data = InMemory("replay", some, queries, queries, (0.0, 0.0), self.block_rows)
        layout, _ = fitted(data, problem_of(data, seed=seed), case)
        self.parts.append(index_of(layout, data))
        self.late, self.since = [], self.until
        self.touched += 2 * len(some)


def run(options: Options) -> Iterator[dict[str, Any]]:
    form = options.form
    rows = pq.read_table(table(EXTERNAL, ROWS[form]), columns=["ingest_time", *QUERIED_COLUMNS])
    age = pc.days_between(rows["ingest_time"][0], rows["ingest_time"])
    ends = [int(pc.sum(pc.less_equal(age, day)).as_py()) for day in range(DAYS)]
    conditions_by_day = [conditions(EXTERNAL, options.seed, QUERIES[form], day) for day in range(DAYS)]
    texts = [[f"SELECT * FROM errors WHERE {condition}" for condition in those] for those in conditions_by_day]
    days = [Day(end, those, predicates_of(bound(those, rows))) for end, those in zip(ends, texts, strict=True)]
    without = 0
    for case in (NOTHING, *options.cases(CASES)):
        progress(f"replay: seed {options.seed}, {case}")
        start = time.perf_counter()
        scanned, touched, blocks = replayed(Table(rows, BLOCK_ROWS[form]), days, case, options.seed)
        without = without or scanned + touched  # of the first case
        yield line(
            suite="replay",
            learner=case[0],
            params={"form": form, **case[1]},
            rows=len(rows),
            blocks=blocks,
            block_rows=BLOCK_ROWS[form],
            queries=DAYS * QUERIES[form],
            ratio=round((scanned + touched) / without, 4),
            details={
                "rows_scanned": scanned,
                "rows_written": touched,
                "seconds": round(time.perf_counter() - start, 1),
            },
            seed=options.seed,
        )


def replayed(table: Table, days: Sequence[Day], case: Case, seed: int) -> tuple[int, int, int]:
    """Return the rows that scans read, the rows written or moved, and the number of blocks in the end."""
    learner, params = case
    own = {name: value for name, value in params.items() if name != "when"}
    scanned = 0
    for number, day in enumerate(days):
        table.insert(day.end)
        scanned += sum(map(table.scan, day.predicates))
        due = number == HALF if params.get("when") == ONCE else number >= HALF and (number - HALF) % OFTEN == 0
        if due and learner != "none":
            table.rewrite([t for earlier in days[: number + 1] for t in earlier.texts], (learner, own), seed)
    blocks = sum(int((index.blocks.rows > 0).sum()) for index in (*table.parts, *table.late))
    return scanned, table.touched, blocks
