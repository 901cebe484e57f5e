"""Ways to read less of a table, side by side: the rows that queries read, the rows stored, the size of the index.

The ways are: one layout; a layout whose small leaves are copied to several blocks; two layouts, of which each query
reads the better one; blocks made by several trees; and a finer unit of skipping inside the blocks of one layout or two,
its cells, as if each was a row group in the index. `stored` is the rows on disk for each row of the table, `index_mb`
the size of the index. The quick form uses the first table only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.data.errorlog_data import EXTERNAL, INTERNAL
from bench.data.tpch_templates import conditions, queries
from bench.data.tpch_wide import MONTHS, wide
from bench.matching import matching
from bench.memory import InMemory, bound, counted, index_of, predicates_of, problem_of
from bench.options import Options
from bench.record import line, progress
from bench.suites import correlated_like, errorlog
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.complement import fit_complement, rows_read
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import checked_cells, checked_eps, greedy
from hedgerow.learners.pando.pando import Pando
from hedgerow.learners.qdtree.qdtree import QdTree
from hedgerow.sql.workload import Workload

SCALE = {"quick": 0.1, "full": 1.0}
BLOCK_ROWS_PER_SF = {"quick": 1000, "full": 100}
PER_TEMPLATE = {"quick": (4, 8), "full": (10, 30)}
FINE = 16  # cells in a block; a block of 64 MB has row groups of 4 MB then
Way = Callable[[InMemory, Problem], Sequence[BlockIndex]]  # several: each query reads the cheapest


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name, load in list(TABLES.items())[: 1 if options.form == "quick" else None]:
        data = load(options)
        problem = counted(data, problem_of(data, seed=options.seed))
        for way, indexes_of in WAYS.items():
            progress(f"frontier: seed {options.seed}, {name}, {way}")
            start = time.perf_counter()
            indexes = indexes_of(data, problem)
            seconds = time.perf_counter() - start
            yield line_of_copies("frontier", way, name, data, indexes, seconds, options)


def line_of_copies(
    suite: str,
    way: str,
    table: str,
    data: InMemory,
    indexes: Sequence[BlockIndex],
    fit_seconds: float,
    options: Options,
    digits: int = 4,
) -> dict[str, Any]:
    """Return the line of a way to store a table once or several times, with an index for each copy."""
    rows = len(data.all_rows)
    return line(
        suite=suite,
        learner=way,
        params={"form": options.form, "table": table},
        rows=rows,
        blocks=int((indexes[0].blocks.rows > 0).sum()),
        block_rows=data.block_rows,
        queries=len(data.learned),
        queries_unseen=len(data.unseen),
        bound=round(data.bounds[0], digits),
        bound_unseen=round(data.bounds[1], digits),
        rows_read=round(share_read(indexes, data.learned), digits),
        rows_read_unseen=round(share_read(indexes, data.unseen), digits),
        fit_seconds=round(fit_seconds, 1),
        details={
            "stored": round(sum(int(i.blocks.rows.sum()) for i in indexes) / rows, 3),
            "index_mb": round(sum(len(index_bytes(i)) for i in indexes) / 1e6, 3),
        },
        seed=options.seed,
    )


def share_read(indexes: Sequence[BlockIndex], workload: Workload) -> float:
    """Return the mean share of the table's rows that a query reads, each by the index with which it reads least."""
    read = [[int(i.blocks.rows[i.to_open(p)].sum()) for p in predicates_of(workload)] for i in indexes]
    return float(np.min(read, axis=0).mean() / indexes[0].blocks.rows[indexes[0].home_blocks].sum())


# --- the ways ---


def _layout(learner: Any, data: InMemory, problem: Problem) -> list[BlockIndex]:
    return [index_of(learner.fit(problem), data)]


def _two_layouts(learner: Any, data: InMemory, problem: Problem) -> list[BlockIndex]:
    first = learner.fit(problem)
    second = fit_complement(learner, problem, rows_read(first, problem).tolist()).layout
    return [index_of(first, data), index_of(second, data)]


@dataclass(frozen=True)
class _Cells:
    """A learner of the cells of a qd-tree, `count` in a block, without joining them into blocks."""

    count: int | None = None

    def fit(self, problem: Problem) -> TreeLayout:
        least = max(1, problem.sample_block_rows // checked_cells(problem, self.count))
        return greedy(problem, least, checked_eps(problem, "gain_ratio"), True)


WAYS: dict[str, Way] = {
    "one layout": partial(_layout, QdTree()),
    "cells as row groups": partial(_layout, _Cells()),
    "16 cells as row groups": partial(_layout, _Cells(FINE)),
    "overlap": partial(_layout, QdTree(overlap=True)),
    "two layouts": partial(_two_layouts, QdTree()),
    "two layouts, 16 cells": partial(_two_layouts, _Cells(FINE)),
    **{f"{k} trees": partial(_layout, Pando(k)) for k in (2, 3, 4)},
}


# --- the tables ---


def _month(options: Options) -> InMemory:
    scale = options.sf or SCALE[options.form]
    table = pq.read_table(wide(scale, MONTHS[0]))
    seeds = tuple(zip((options.seed, ~options.seed), PER_TEMPLATE[options.form], strict=True))
    learned, unseen = (bound([sql for _, sql in queries(*s)], table) for s in seeds)
    matched, matched_unseen = (fmean(matching(table, conditions(*s))) for s in seeds)
    rows = round(scale * BLOCK_ROWS_PER_SF[options.form])
    return InMemory("frontier", table, learned, unseen, (matched, matched_unseen), rows)


TABLES: dict[str, Callable[[Options], InMemory]] = {
    "tpch-month": _month,
    "errorlog-int": partial(errorlog.load, INTERNAL),
    "errorlog-ext": partial(errorlog.load, EXTERNAL),
    "correlated-like": correlated_like.load,
}
