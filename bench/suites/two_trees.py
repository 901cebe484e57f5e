"""Two full copies of a table, each in a tree of its own, beside one: the qd-tree paper's 6.3, which it did not measure.

A query reads the copy in which it reads less. The published trees grow by a criterion that knows the other tree
(`published_two_trees`). Ours are learned in turns by the usual learner, from the queries that the other tree serves
badly. `stored` is the rows on disk for each row of the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bench.data.errorlog_data import EXTERNAL, INTERNAL
from bench.data.tpch_wide import MONTHS
from bench.memory import InMemory, counted, index_of, problem_of
from bench.options import ALGORITHM_1, Options
from bench.published_two_trees import two_trees
from bench.record import progress
from bench.suites import correlated_like, errorlog, fig8
from bench.suites.frontier import line_of_copies
from hedgerow.core.layouts.base import Layout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.replicas import fit_replicas
from hedgerow.learners.qdtree.qdtree import QdTree

PUBLISHED: dict[str, Any] = dict(ALGORITHM_1[1])
THESE_ONLY = {"recurrence": 1}
Way = Callable[[Problem], Sequence[Layout]]


def _ours(copies: int) -> Way:
    return lambda problem: fit_replicas(QdTree(), problem, copies).layouts


WAYS: dict[str, tuple[dict[str, Any], Way]] = {
    "one tree, as published": (PUBLISHED, lambda problem: [QdTree("skip", cells=1).fit(problem)]),
    "two trees, as published": (PUBLISHED, two_trees),
    "one tree, of these queries only": (THESE_ONLY, _ours(1)),
    "two trees, of these queries only": (THESE_ONLY, _ours(2)),
    "one tree": ({}, _ours(1)),
    "two trees": ({}, _ours(2)),
}
TABLES: dict[str, Callable[[Options], InMemory]] = {
    **{month: partial(fig8.load, month) for month in reversed(MONTHS)},
    "correlated-like": correlated_like.load,
    "errorlog-int": partial(errorlog.load, INTERNAL),
    "errorlog-ext": partial(errorlog.load, EXTERNAL),
}


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name, load in list(TABLES.items())[: 1 if options.form == "quick" else None]:
        data = load(options)
        for way, (params, layouts_of) in WAYS.items():
            progress(f"two-trees: seed {options.seed}, {name}, {way}")
            learning = params.get("recurrence", "auto"), params.get("cuts", "usual")
            problem = counted(data, problem_of(data, *learning, seed=options.seed))
            start = time.perf_counter()
            layouts = layouts_of(problem)
            seconds = time.perf_counter() - start
            indexes = [index_of(layout, data) for layout in layouts]
            yield line_of_copies("two-trees", way, name, data, indexes, seconds, options, digits=6)
