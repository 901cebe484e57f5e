"""Inserts and scans in the order of time: the evaluation of the thesis on self-organizing layouts (6.1), in rows.

Each day of a crash-report log its rows are inserted, then the day's queries scan all rows so far. The cost is counted
in rows: those that scans read, those inserted, and those that rewrites read and write again.

    nothing            rows stay in the blocks in which they came
    once               half-way all rows are rewritten for the queries so far; later ones stay as they came
    every third day    from half-way on, the rows inserted since the last rewrite are rewritten in a new layout
    it pays            the thesis' automatic way (5): after each insert the rows inserted since the last rewrite are
                       rewritten, if the queries so far would skip more of them than a rewrite reads and writes
    edges              the idea of WAIR (SIGMOD 2026), without its estimate of costs: only blocks on the edges of
                       queries, which these read for a part of their rows, are clustered again, together in a Z-order.
                       After each day these are the blocks that were read in part, since they were written, by as many
                       queries as are asked in `days` days. Their index has bounds and few values, but no words and no
                       outcomes of conditions

There are two histories. In the thesis the workload does not change (7.2): the same teams ask on all days, about later
dates (`constant`). In `changed`, half of the teams ask until half-way, and the others after that.

The thesis measures time on a cluster. Its formula of the benefit counts each skipped byte once (5.2); here it counts
for each query of the workload, because otherwise no rewrite pays.
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
from bench.memory import InMemory, blocks_of, bound, counted, fitted, index_of, predicates_of, problem_of, reads_of
from bench.options import Case, Options
from bench.record import line, progress
from hedgerow.core.arrays import Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.reasons import all_match
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import index_of_assignment, virtual_index
from hedgerow.core.predicates.nodes import Predicate

ROWS = {"quick": 15_000, "full": 1_000_000}
BLOCK_ROWS = {"quick": 100, "full": 1_000}
QUERIES = {"quick": 4, "full": 40}  # a day
DAYS, HALF, OFTEN = EXTERNAL.days, EXTERNAL.days // 2, 3
ONCE, AGAIN, AUTOMATIC, EDGES = "once", "every third day", "it pays", "edges"
REWRITE = 2  # a rewrite reads and writes each row
NOTHING: Case = ("none", {})
SOP = {"cost": "sop", "recurrence": 1}
CASES: tuple[Case, ...] = (
    ("zorder", {"when": ONCE}),
    ("sop_zorder", {"when": ONCE, **SOP}),
    ("qdtree", {"when": ONCE}),
    ("qdtree", {"when": AGAIN}),
    ("sop_zorder", {"when": AUTOMATIC, **SOP}),
    ("sop_zorder", {"when": AUTOMATIC}),
    ("qdtree", {"when": AUTOMATIC}),
    *(("zorder", {"when": EDGES, "days": days}) for days in (0.5, 1, 2)),
)
# The teams that ask in the first half of a history, and in the second.
HISTORIES = {
    "constant": (slice(None), slice(None)),
    "changed": (slice(0, None, 2), slice(1, None, 2)),
}


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
    rewrites: int = 0

    def insert(self, end: int) -> None:
        some = Sample.of_table(self.rows.slice(self.until, end - self.until))
        block = np.arange(len(some)) // self.block_rows
        self.late.append(index_of_assignment(block, int(block[-1]) + 1, some))
        self.touched += len(some)
        self.until = end

    def scan(self, p: Predicate) -> int:
        return sum(int(index.blocks.rows[index.to_open(p)].sum()) for index in (*self.parts, *self.late))

    def rewrite(self, texts: Sequence[str], case: Case, seed: int, if_it_pays: bool = False) -> None:
        """Rewrite the rows inserted since the last rewrite, in a layout learned from the queries so far."""
        some = self.rows.slice(self.since, self.until - self.since)
        queries = bound(texts, some)
        data = InMemory("replay", some, queries, queries, (0.0, 0.0), self.block_rows)
        problem = counted(data, problem_of(data, case[1].get("recurrence", "auto"), seed=seed), case[1])
        layout, _ = fitted(problem, case)
        if if_it_pays and estimated_gain(layout, data, problem.sample) <= REWRITE * len(some):
            return
        self.parts.append(index_of(layout, data))
        self.late, self.since = [], self.until
        self.touched += REWRITE * len(some)
        self.rewrites += 1


@dataclass
class EdgesTable(Table):
    """The same table, where blocks on the edges of queries are clustered again.

    `block` is the block of each row so far, and `in_part` says how many queries have read each block in part."""

    block: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    in_part: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def insert(self, end: int) -> None:
        added = end - self.until
        self.block = np.append(self.block, len(self.in_part) + np.arange(added) // self.block_rows)
        self.touched += added
        self.until = end
        self._index()

    def _index(self) -> None:
        blocks = int(self.block.max(initial=-1)) + 1
        self.in_part = np.append(self.in_part, np.zeros(blocks - len(self.in_part), np.int64))
        self.parts = [index_of_assignment(self.block, blocks, Sample.of_table(self.rows.slice(0, self.until)))]

    def cluster_edges(self, day: Day, asked: Sequence[str], case: Case, seed: int) -> None:
        """Note which blocks the day's queries read in part, and cluster the blocks with enough such reads."""
        (index,) = self.parts
        for p in day.predicates:
            self.in_part += index.to_open(p) & ~all_match(index, p)
        params = dict(case[1])
        often = self.in_part >= params.pop("days") * len(day.predicates)
        rows = np.flatnonzero(often[self.block])
        if len(rows) < 2 * self.block_rows:
            return
        queries = bound(asked, some := self.rows.take(rows))
        data = InMemory("replay", some, queries, queries, (0.0, 0.0), self.block_rows)
        layout, _ = fitted(counted(data, problem_of(data, seed=seed)), (case[0], params))
        self.block[rows] = len(self.in_part) + blocks_of(layout, data)
        self.touched += REWRITE * len(rows)
        self.rewrites += 1
        self._index()


def estimated_gain(layout: Layout, data: InMemory, sample: Sample) -> float:
    """Return the rows that the queries would skip if they came once more, by virtual files of the sample (5.2)."""
    features = (f for f in layout.features if isinstance(f, Predicate))
    read, _ = reads_of(virtual_index(layout, sample.noting((*data.noted, *features))), data.learned)
    return (1 - read) * len(data.learned) * len(data.all_rows)


def run(options: Options) -> Iterator[dict[str, Any]]:
    form = options.form
    rows = pq.read_table(table(EXTERNAL, ROWS[form]), columns=["ingest_time", *QUERIED_COLUMNS])
    for history in HISTORIES:
        yield from _history(history, rows, options)


def _history(history: str, rows: pa.Table, options: Options) -> Iterator[dict[str, Any]]:
    form, days, without = options.form, days_of(history, rows, options), 0
    for case in (NOTHING, *options.cases(CASES)):
        progress(f"replay: seed {options.seed}, {history}, {case}")
        start = time.perf_counter()
        replayed = (EdgesTable if case[1].get("when") == EDGES else Table)(rows, BLOCK_ROWS[form])
        scanned = scan_days(replayed, days, case, options.seed)
        without = without or scanned + replayed.touched  # of the first case
        blocks = sum(int((index.blocks.rows > 0).sum()) for index in (*replayed.parts, *replayed.late))
        yield line(
            suite="replay",
            learner=case[0],
            params={"form": form, "history": history, **case[1]},
            rows=len(rows),
            blocks=blocks,
            block_rows=BLOCK_ROWS[form],
            queries=DAYS * QUERIES[form],
            ratio=round((scanned + replayed.touched) / without, 4),
            details={
                "rows_scanned": scanned,
                "rows_written": replayed.touched,
                "rewrites": replayed.rewrites,
                "seconds": round(time.perf_counter() - start, 1),
            },
            seed=options.seed,
        )


def days_of(history: str, rows: pa.Table, options: Options) -> list[Day]:
    age = pc.days_between(rows["ingest_time"][0], rows["ingest_time"])
    days = []
    for day in range(DAYS):
        asking = HISTORIES[history][day > HALF]
        wheres = conditions(EXTERNAL, options.seed, QUERIES[options.form], day, asking)
        texts = [f"SELECT * FROM errors WHERE {where}" for where in wheres]
        end = int(pc.sum(pc.less_equal(age, day)).as_py())
        days.append(Day(end, texts, predicates_of(bound(texts, rows))))
    return days


def scan_days(table: Table, days: Sequence[Day], case: Case, seed: int) -> int:
    """Insert the rows of each day, run its queries and rewrite when it is time; return the rows that scans read."""
    learner, params = case
    own, when = (learner, {name: value for name, value in params.items() if name != "when"}), params.get("when", AGAIN)
    scanned = 0
    asked: list[str] = []
    for number, day in enumerate(days):
        table.insert(day.end)
        if when == AUTOMATIC and asked:
            table.rewrite(asked, own, seed, if_it_pays=True)
        scanned += sum(map(table.scan, day.predicates))
        asked += day.texts
        if isinstance(table, EdgesTable):
            table.cluster_edges(day, asked, own, seed)
            continue
        due = number == HALF if when == ONCE else number >= HALF and (number - HALF) % OFTEN == 0
        if due and when != AUTOMATIC and learner != "none":
            table.rewrite(asked, own, seed)
    return scanned
