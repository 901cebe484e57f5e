"""How near Algorithm 1 and WOODBLOCK come to the best tree of the same cuts, at the qd-tree paper's block count.

All rows are the sample, so nothing is lost between sample and table. A tree is measured by what it can know, the
outcomes of all cuts in each leaf, and then by our index, which notes fewer outcomes. No tree reads less than the bound
(`bench/best_tree`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from bench.best_tree import least_read, share_read
from bench.data.errorlog_data import EXTERNAL, INTERNAL
from bench.memory import InMemory, index_of, problem_of, reads_of
from bench.options import Options
from bench.record import line, progress
from bench.suites import errorlog, fig8
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Problem
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.learners.woodblock.woodblock import Woodblock

TABLES = {
    "errorlog-int": partial(errorlog.load, INTERNAL),
    "errorlog-ext": partial(errorlog.load, EXTERNAL),
    "month": partial(fig8.load, "1996-09"),
}
TREES = {"quick": 32, "full": 128}  # that the agent grows
LEARNERS: dict[str, QdTree | Woodblock] = {
    "greedy": QdTree("skip", cells=1),
    "greedy by gain ratio": QdTree("gain_ratio", cells=1),
    "WOODBLOCK": Woodblock(budget_seconds=None),
}
BOUND = "no tree reads less"


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name, load in list(TABLES.items())[: 1 if options.form == "quick" else None]:
        data = load(options)
        problem = replace(problem_of(data, 1, "atoms", options.seed, each=data.block_rows), trial=None)
        assert problem.sample.fraction == 1
        yield _bound(data, problem, name, options)
        for way, learner in LEARNERS.items():
            yield from _measured(data, problem, name, way, learner, options)


def _bound(data: InMemory, problem: Problem, name: str, options: Options) -> dict[str, Any]:
    progress(f"best-tree: seed {options.seed}, {name}, the bound")
    start = time.perf_counter()
    least = least_read(problem)
    return _line(data, name, BOUND, options, rows_read=least, fit_seconds=time.perf_counter() - start)


def _measured(
    data: InMemory, problem: Problem, name: str, way: str, learner: QdTree | Woodblock, options: Options
) -> Iterator[dict[str, Any]]:
    progress(f"best-tree: seed {options.seed}, {name}, {way}")
    start = time.perf_counter()
    layout: Layout
    trees = None
    if isinstance(learner, Woodblock):
        found = replace(learner, max_trees=TREES[options.form]).search(problem)
        layout, trees = found.layout, found.curve[-1].trees
    else:
        layout = learner.fit(problem)
    seconds = time.perf_counter() - start
    about: dict[str, Any] = {"blocks": layout.blocks, "fit_seconds": seconds, "trees": trees}
    yield _line(data, name, way, options, rows_read=share_read(problem, layout), **about)
    index = index_of(layout, data)
    read, unseen = (reads_of(index, workload)[0] for workload in (data.learned, data.unseen))
    about |= {"least_block": int(index.blocks.rows.min()), "queries_unseen": len(data.unseen)}
    about["rows_read_unseen"] = round(unseen, 7)
    yield _line(data, name, f"{way}, by our index", options, rows_read=read, **about)


def _line(data: InMemory, name: str, way: str, options: Options, **measured: Any) -> dict[str, Any]:
    return line(
        suite="best-tree",
        learner=way,
        params={"form": options.form, "table": name},
        rows=len(data.all_rows),
        block_rows=data.block_rows,
        queries=len(data.learned),
        bound=round(data.bounds[0], 7),
        **{**measured, "rows_read": round(measured["rows_read"], 7), "fit_seconds": round(measured["fit_seconds"], 1)},
        seed=options.seed,
    )
