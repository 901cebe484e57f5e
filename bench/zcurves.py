"""Rows that queries scan when a curve orders them: Table 1 of the Z-order paper, on tables with the shapes of its four.

In memory and without Spark. A layout is learned from a sample and a first set of queries, and asked all rows of the
table with these and with as many others. A block is to the table what 4 MB were to the paper's: as many of them as
its rows would fill, so a block has fewer rows here. `default` is the order in which the rows come.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq

from bench.options import LEARNED_BITS, Case, Options
from bench.record import line, progress
from bench.zcurves_tables import SHAPES, queries, table_of
from hedgerow.core import cost
from hedgerow.core.problem import Problem
from hedgerow.core.redraw import redrawn
from hedgerow.core.sample import Sample
from hedgerow.core.workload import Query
from hedgerow.pipeline import make_learner
from hedgerow.sql.workload import Workload

BLOCK_BYTES = 4 << 20
ROWS = {"quick": 40_000, "full": 1_000_000}
SAMPLE = {"quick": 20_000, "full": 100_000}
QUERIES = {"quick": 100, "full": 500}
TIMED = {"quick": 6, "full": 30}  # queries, where tables are written
FILES = 8  # of the table as it comes, then
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (
        *((name, {}) for name in ("default", "range", "zorder", "hilbert")),
        ("zorder_learned", {"iterations": 300}),
    ),
    "full": (
        *((name, {}) for name in ("default", "range", "zorder", "hilbert")),
        LEARNED_BITS,
        ("zorder_learned", {}),
    ),
}


@dataclass(frozen=True, eq=False)
class Shaped:
    """One table, what is learned from and what is asked of it."""

    name: str
    whole: Sample
    sample: Sample
    learned: tuple[Query, ...]
    unseen: tuple[Query, ...]
    block_rows: int


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in SHAPES:
        shaped = shaped_of(name, options)
        found = []
        for case in options.cases(CASES[options.form]):
            found.append(measured(shaped, case, options))
            yield found[-1]
        check(found)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """What queries take on tables that are written, beside peers."""
    from bench.physical import Physical, run

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        for name, shape in SHAPES.items():
            table = table_of(name, ROWS[options.form], options.seed)
            source = Path(folder, name)
            source.mkdir()
            for i, start in enumerate(range(0, len(table), len(table) // FILES)):
                pq.write_table(
                    table.slice(start, len(table) // FILES), source / f"part-{i}.parquet", compression="zstd"
                )
            learned = Workload.from_sql(queries(name, table, QUERIES[options.form], options.seed))
            asked = [("all", sql) for sql in queries(name, table, TIMED[options.form], ~options.seed)]
            by, params = shape.asked[0].column, {"shape": name}
            data = Physical("zcurves-physical", name, source, learned, asked, by, params=params)
            yield from run(data, [("zorder_learned", {})], options)


def shaped_of(name: str, options: Options) -> Shaped:
    rows, n = ROWS[options.form], QUERIES[options.form]
    progress(f"zcurves: {name}, {rows:,} rows, seed {options.seed}")
    table = table_of(name, rows, options.seed)
    whole = Sample.of_table(table)
    # Learned seeds are 0 and more, so these are never among them.
    texts = (queries(name, table, n, seed) for seed in (options.seed, ~options.seed))
    learned, unseen = (Workload.from_sql(own).bind({name: whole.schema}).queries for own in texts)
    blocks = SHAPES[name].paper_mrows * 1e6 * (table.nbytes / rows) / BLOCK_BYTES
    # Fewer blocks than the paper had where a block would have hardly a row in the sample.
    block_rows = max(1, round(rows / min(blocks, SAMPLE[options.form] / LEAST_SAMPLED)))
    return Shaped(name, whole, Sample.of_table(table, SAMPLE[options.form], options.seed), learned, unseen, block_rows)


LEAST_SAMPLED = 100  # rows of a block in the sample, as `learn` has by default


@lru_cache(maxsize=2)  # of one shape: queries as they are, and redrawn ones
def problem_of(shaped: Shaped, recurrence: float | Literal["auto"], seed: int) -> Problem:
    asked = tuple(q.predicate(shaped.name) for q in shaped.learned)
    again = redrawn(asked, [q.weight for q in shaped.learned], shaped.sample, recurrence)
    problem = Problem.build(again.sample, again.predicates, shaped.block_rows, again.weights, seed=seed)
    return replace(problem, seen=again.seen)


def measured(shaped: Shaped, case: Case, options: Options) -> dict[str, Any]:
    learner, params = case
    progress(f"zcurves: {shaped.name}, {learner} {dict(params)}")
    seconds = 0.0
    if learner == "default":
        blocks = np.arange(len(shaped.whole)) // shaped.block_rows
        index = cost.index_of_assignment(blocks, int(blocks[-1]) + 1, shaped.whole)
    else:
        own = {name: value for name, value in params.items() if name != "recurrence"}
        problem = problem_of(shaped, params.get("recurrence", "auto"), options.seed)
        start = time.perf_counter()
        layout = make_learner(learner, **own).fit(problem)
        seconds = time.perf_counter() - start
        index = cost.virtual_index(layout, shaped.whole)
    score, unseen = (cost.score_index(index, shaped.whole, q, shaped.name) for q in (shaped.learned, shaped.unseen))
    return line(
        suite="zcurves",
        learner=learner,
        params={"form": options.form, "shape": shaped.name, **params},
        rows=len(shaped.whole),
        blocks=score.blocks,
        block_rows=shaped.block_rows,
        least_block=int(index.blocks.rows.min()),
        queries=len(shaped.learned),
        queries_unseen=len(shaped.unseen),
        bound=round(score.selectivity or 0.0, 5),
        bound_unseen=round(unseen.selectivity or 0.0, 5),
        rows_read=round(score.rows_read, 5),
        rows_read_unseen=round(unseen.rows_read, 5),
        blocks_read=round(score.blocks_read, 5),
        blocks_read_unseen=round(unseen.blocks_read, 5),
        fit_seconds=round(seconds, 1),
        seed=options.seed,
    )


def check(lines: Sequence[dict[str, Any]]) -> None:
    """Nobody reads less than what matches; the learned order reads no more than the best of the others, but for what a
    sample may err."""
    for found in lines:
        for read, bound in (("rows_read", "bound"), ("rows_read_unseen", "bound_unseen")):
            assert found[read] >= found[bound], f"{found['learner']} reads {found[read]}, but {found[bound]} match"
    others = [found["rows_read"] for found in lines if found["learner"] != "zorder_learned"]
    for found in lines:
        if others and found["learner"] == "zorder_learned" and found["params"].get("starts", True):
            assert found["rows_read"] <= 1.02 * min(others), f"{found['rows_read']} read, others {min(others)}"
