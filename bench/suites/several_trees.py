"""Gain and cost of several trees as data, queries, blocks and samples grow: Figs. 9 to 13 of Pando, in memory.

The table and the queries are those of `correlated-like`; one size is varied at a time. A line has the rows that queries
read, the seconds of learning and of finding each row's block (Fig. 10), and the size of the index (Fig. 9).

The second load is Fig. 12: a layout is learned from one day of runs, and the rows of the next day, some of them late,
are appended in it. Queries of the second day search for words, many of them within some hours. For comparison, a layout
is learned from both days and the first day's queries.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from bench.matching import matching
from bench.memory import InMemory, blocks_of, bound, counted, fitted, indexed, problem_of, reads_of
from bench.options import MTO, PANDO, Case, Options, by_trees
from bench.read_by_trees import TreeIndex
from bench.record import line, progress
from bench.suites.correlated_like import conditions, rows_of
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes

USUAL = {"rows": 1_000_000, "queries": 100, "block_rows": 5_000, "sample": 100}
VARIED = {
    "rows": ("{:,} rows", (250_000, 500_000, 2_000_000)),
    "queries": ("{} queries", (25, 50, 200, 400)),
    "block_rows": ("blocks of {:,} rows", (1_000, 20_000, 50_000)),
    "sample": ("{} rows sampled of a block", (10, 50, 500)),
}
QUICK = {"rows": 20_000, "queries": 20, "block_rows": 1_000, "sample": 100}
DAY, LATE = 1440, 0.05  # minutes; the share of a load's rows that belong to the day before
RANGE: Case = ("range", {"columns": "started_minute", "recurrence": 1})
CASES: tuple[Case, ...] = (
    RANGE,
    *map(by_trees, (MTO, PANDO[0])),
    *(MTO, PANDO[0], ("qdtree", {}), ("pando", {})),
)


def run(options: Options) -> Iterator[dict[str, Any]]:
    usual = QUICK if options.form == "quick" else USUAL
    sizes = {"as it is": usual}
    if options.form == "full":
        sizes |= {shown.format(v): {**usual, name: v} for name, (shown, values) in VARIED.items() for v in values}
    for name, size in sizes.items():
        data = _one_load(size, options.seed)
        for case in options.cases(CASES):
            yield _measured(data, data, case, name, size["sample"], options)
    yield from _loads(usual, options)


def _one_load(size: dict[str, int], seed: int) -> InMemory:
    rows = rows_of(size["rows"], 0, size["rows"])
    texts = [conditions(s, size["queries"]) for s in (seed, ~seed)]
    return _in_memory(rows, texts, size["block_rows"])


def _in_memory(rows: pa.Table, texts: Sequence[Sequence[str]], block_rows: int) -> InMemory:
    learned, unseen = (bound([f"SELECT * FROM runs WHERE {condition}" for condition in those], rows) for those in texts)
    matched, matched_unseen = (fmean(matching(rows, those)) for those in texts)
    return InMemory("several-trees", rows, learned, unseen, (matched, matched_unseen), block_rows)


def _loads(size: dict[str, int], options: Options) -> Iterator[dict[str, Any]]:
    half = size["rows"] // 2
    first, second = (rows_of(size["rows"], start, start + half) for start in (0, half))
    r = np.random.default_rng([7, options.seed])
    minutes = [np.arange(half) * DAY // half, np.arange(half) * DAY // half + DAY]
    minutes[1][r.random(half) < LATE] -= DAY
    first, second = (
        some.set_column(0, "started_minute", pa.array(own)) for some, own in zip((first, second), minutes, strict=True)
    )
    texts = [_within_hours(s, size["queries"], day) for s, day in ((options.seed, 0), (~options.seed, 1))]
    before = _in_memory(first, texts, size["block_rows"])
    both = _in_memory(pa.concat_tables([first, second]), texts, size["block_rows"])
    for case in options.cases(CASES):
        yield _measured(before, both, case, "a second load", size["sample"], options, (half, half))
        yield _measured(both, both, case, "a second load, learned anew", size["sample"], options)


def _within_hours(seed: int, n: int, day: int) -> list[str]:
    r = random.Random(f"loads, {seed}")
    texts = []
    for condition in conditions(seed, n):
        start = day * DAY + 60 * r.randrange(24)
        within = f" AND started_minute >= {start} AND started_minute < {start + 60 * r.choice((1, 4, 24))}"
        texts.append(condition + (within if r.random() < 0.6 else ""))
    return texts


def _measured(
    learned_from: InMemory,
    data: InMemory,
    case: Case,
    name: str,
    sampled: int,
    options: Options,
    loads: Sequence[int] = (),
) -> dict[str, Any]:
    learner, params = case
    progress(f"several-trees: seed {options.seed}, {name}, {learner} {dict(params)}")
    given = {name: params[name] for name in ("recurrence", "cuts") if name in params}
    problem = counted(learned_from, problem_of(learned_from, **given, seed=options.seed, each=sampled), params)
    start = time.perf_counter()
    layout, _ = fitted(problem, case)
    fitted_at = time.perf_counter()
    blocks_of(layout, data)
    routed = time.perf_counter() - fitted_at
    index = indexed(layout, data, problem, case, loads)
    reads, unseen = (reads_of(index, workload) for workload in (data.learned, data.unseen))
    rows = index.blocks.rows[index.blocks.rows > 0]
    return line(
        suite="several-trees",
        learner=learner,
        params={"form": options.form, "table": name, **params},
        rows=len(data.all_rows),
        blocks=len(rows),
        block_rows=data.block_rows,
        least_block=int(rows.min()),
        queries=len(data.learned),
        queries_unseen=len(data.unseen),
        bound=round(data.bounds[0], 4),
        bound_unseen=round(data.bounds[1], 4),
        rows_read=round(reads[0], 4),
        rows_read_unseen=round(unseen[0], 4),
        blocks_read=round(reads[1], 4),
        blocks_read_unseen=round(unseen[1], 4),
        fit_seconds=round(fitted_at - start, 1),
        details={"route_seconds": round(routed, 1), **_size(index)},
        seed=options.seed,
    )


def _size(index: BlockIndex | TreeIndex) -> dict[str, float]:
    return {"index_mb": round(len(index_bytes(index)) / 1e6, 3)} if isinstance(index, BlockIndex) else {}
