"""Fig. 8 of the qd-tree paper: what Woodblock's best tree reads as time goes by, on TPC-H's month, without Spark.

The table and the queries are those of `tpch-month`; DuckDB answers what only an engine could. A line tells what the
layout reads of the whole month in the end, of the queries learned from and of unseen ones; the curve, which is drawn on
standard error, is what the leaves of the best tree read of the sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.options import ALGORITHM_1, Case, Options
from bench.record import line, progress
from bench.tpch_month import BLOCK_ROWS_PER_SF, PER_TEMPLATE
from bench.tpch_templates import queries
from bench.tpch_wide import MONTHS, wide
from hedgerow.core import cost
from hedgerow.core.bind import as_schema
from hedgerow.core.expr import Opaque, Predicate, atoms, columns
from hedgerow.core.layout import Layout
from hedgerow.core.problem import Problem, unanswered
from hedgerow.core.redraw import redrawn
from hedgerow.core.rows import Rows
from hedgerow.core.sample import Sample
from hedgerow.core.stats import F_BIT, N_BIT, T_BIT, Bits, Stats
from hedgerow.core.workload import Query
from hedgerow.learners.woodblock import PAPER, Point, Woodblock
from hedgerow.pipeline import make_learner
from hedgerow.spark.sample import sample_size
from hedgerow.sql.workload import Workload

SCALE = {"quick": 0.1, "full": 1.0}
SECONDS = {"quick": 5, "full": 600}
CASES: tuple[Case, ...] = (
    ALGORITHM_1,
    ("woodblock", {**PAPER, "recurrence": 1}),
    ("qdtree", {"recurrence": 1}),
    ("woodblock", {"recurrence": 1}),
)


class Month:
    """One month's rows in memory."""

    def __init__(self, folder: Path, asked: Sequence[Sequence[Query]]) -> None:
        self.folder = folder
        names = {c.path[0] for own in asked for q in own for c in columns(q.predicate("tpch"))}
        table = pq.read_table(folder, columns=sorted(names))
        self.sample = Sample.of_table(table)
        self.truths: dict[Predicate, Bits] = {}

    def whole(self, also: Iterable[Predicate] = ()) -> Sample:
        """All rows, with the outcomes of these conditions."""
        opaque = {a for p in also for a in atoms(p) if isinstance(a, Opaque)}
        for p in sorted(opaque - set(self.truths), key=lambda p: p.sql):
            self.truths[p] = self._asked(p)
        rows = Rows(self.sample.rows.ranked, {p: self.truths[p] for p in opaque})
        return replace(self.sample, rows=rows).noting(also)

    def _asked(self, p: Opaque) -> Bits:
        import duckdb

        with duckdb.connect(config={"threads": 1}) as con:
            con.execute("SET enable_progress_bar = false")
            found = con.sql(f"SELECT {p.sql} AS truth FROM '{self.folder}/*.parquet'").fetchnumpy()["truth"]
        true = np.where(np.ma.getdata(found).astype(bool), T_BIT, F_BIT)
        return np.where(np.ma.getmaskarray(found), N_BIT, true).astype(np.uint8)

    @cached_property
    def rows(self) -> int:
        return len(self.sample)


def run(options: Options) -> Iterator[dict[str, Any]]:
    scale = options.sf or SCALE[options.form]
    block_rows = max(1, round(scale * BLOCK_ROWS_PER_SF[options.form]))
    for name in options.months or MONTHS[:1]:
        folder = wide(scale, name)
        schema = as_schema(pq.read_schema(next(folder.glob("*.parquet"))))
        seeds = zip((options.seed, ~options.seed), PER_TEMPLATE[options.form], strict=True)
        learned, unseen = (
            Workload.from_sql([sql for _, sql in queries(*s)]).on("tpch").bind({"tpch": schema}).queries for s in seeds
        )
        month = Month(folder, (learned, unseen))
        for learner, params in options.cases(CASES):
            if learner == "woodblock":
                params = {"budget_seconds": SECONDS[options.form], **params}
            progress(f"fig8: {name}, seed {options.seed}, {learner} {dict(params)}")
            yield measured(month, learned, unseen, block_rows, learner, params, options.seed) | {
                "sf": scale,
                "month": name,
            }


def measured(
    month: Month,
    learned: Sequence[Query],
    unseen: Sequence[Query],
    block_rows: int,
    learner: str,
    params: Any,
    seed: int,
) -> dict[str, Any]:
    own = {name: value for name, value in params.items() if name != "recurrence"}
    predicates = tuple(q.predicate("tpch") for q in learned)
    problem = problem_of(month, predicates, block_rows, params.get("recurrence", "auto"), seed)
    made = make_learner(learner, **own)
    start = time.perf_counter()
    layout: Layout
    curve: tuple[Point, ...] = ()
    if isinstance(made, Woodblock):
        layout, curve = made.search(problem)
    else:
        layout = made.fit(problem)
    seconds = time.perf_counter() - start
    noted = unanswered(predicates, problem.sample)
    whole = month.whole([*predicates, *noted, *(p for p in layout.features if isinstance(p, Predicate))])
    index = cost.virtual_index(layout, whole)
    found, later = (cost.score_index(index, whole, asked, "tpch") for asked in (learned, unseen))
    for row in drawn(curve):
        progress(row)
    return line(
        suite="fig8",
        learner=learner,
        params=dict(params),
        rows=month.rows,
        blocks=found.blocks,
        block_rows=block_rows,
        least_block=int(index.blocks.rows.min()),
        queries=len(learned),
        queries_unseen=len(unseen),
        bound=round(found.selectivity or 0.0, 4),
        rows_read=round(found.rows_read, 4),
        rows_read_unseen=round(later.rows_read, 4),
        learn_seconds=round(seconds, 2),
        trees=round(curve[-1].trees) if curve else None,
        trees_per_s=round(curve[-1].trees / curve[-1].seconds, 1) if curve else None,
        curve=[[round(x, 4) for x in point] for point in _few(curve)] or None,
        seed=seed,
    )


def problem_of(month: Month, predicates: tuple[Predicate, ...], block_rows: int, recurrence: Any, seed: int) -> Problem:
    picked = np.random.default_rng(seed).choice(month.rows, sample_size(month.rows, block_rows), replace=False)
    sample = replace(month.whole(predicates), rows=month.whole(predicates).rows.take(np.sort(picked)))
    asked, weights, sample, seen = redrawn(predicates, [1.0] * len(predicates), sample, recurrence, seed)
    problem = Problem.build(sample, asked, block_rows, weights, seed=seed)
    cuts = [*problem.cuts, *predicates]

    def measure(layout: Layout) -> Stats:
        rows = month.whole([*cuts, *(p for p in layout.features if isinstance(p, Predicate))]).rows
        return rows.stats(layout.assign(rows), layout.blocks)

    return replace(problem, seen=seen, measure=measure)


def _few(curve: Sequence[Point], most: int = 60) -> list[Point]:
    """Points at about equal distances on a logarithmic axis, the first and the last among them."""
    if len(curve) <= most:
        return list(curve)
    return [curve[i] for i in sorted(set(np.geomspace(1, len(curve), most).astype(int) - 1))]


def drawn(curve: Sequence[Point], width: int = 50) -> list[str]:
    """The curve as text: # is what the best tree reads, - what new trees read on average."""
    rows = []
    for point in _few(curve, 16):
        best, mean = (min(width, round(width * share)) for share in (point.best, point.mean))
        bar = "#" * best + "-" * max(0, mean - best)
        rows.append(f"{point.seconds:7.1f} s {point.trees:8,.0f} trees  {100 * point.best:5.2f} %  {bar}")
    return rows
