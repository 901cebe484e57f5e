"""Choose the column that rows are sorted by inside a block, so that readers skip the parts in which no row matches.

Parquet keeps the bounds of short runs of rows, and Spark skips by them inside of the files that it opens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.curve import CurveLayout
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.score import index_of_assignment
from hedgerow.core.predicates.nodes import Column, Predicate, columns_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.block_stats import Ints

RUN_ROWS = 20_000  # of a table, with bounds of their own: Parquet's default for a page
_MIN_SAMPLED = 20  # rows of the sample in a run: fewer have narrower bounds than the run itself
_MAX_QUERIES = 300


def best_order(layout: Layout, problem: Problem) -> str | None:
    """The top-level column that lets the problem's queries skip most rows, as SQL writes it.

    None if no column lets them skip any, or if the layout orders rows itself."""
    if isinstance(layout, CurveLayout) and layout.key_sql() is not None:
        return None
    rows = problem.sample.rows
    columns = {c for p in problem.predicates for c in columns_of(p) if len(c.path) == 1}
    ranked = {term: column.places for term, column in rows.ranked.items() if term in columns}
    if not ranked:
        return None
    cell = (layout.leaves[0] if isinstance(layout, TreeLayout) else layout).assign(rows)
    run = max(_MIN_SAMPLED, round(RUN_ROWS * problem.sample.fraction))
    asked = _some_queries(problem)

    def skipped(term: Column) -> float:
        return _skipped(_runs(cell, ranked[term], run), problem, asked)

    usual = _skipped(_runs(cell, np.zeros(len(rows), np.int64), run), problem, asked)
    gains = {term_text(c): skipped(c) - usual for c in sorted(ranked, key=term_text) if isinstance(c, Column)}
    best = max(gains, key=lambda name: gains[name])
    return best if gains[best] > 0 else None


def _some_queries(problem: Problem) -> list[tuple[Predicate, float]]:
    """Predicates drawn by weight, and how often each was drawn; all of them, if they are few."""
    if len(problem.predicates) <= _MAX_QUERIES:
        return list(zip(problem.predicates, problem.weights, strict=True))
    share = np.array(problem.weights) / sum(problem.weights)
    drawn = np.random.default_rng(problem.seed).multinomial(_MAX_QUERIES, share)
    return [(problem.predicates[i], float(drawn[i])) for i in np.flatnonzero(drawn).tolist()]


def _runs(cell: np.ndarray, value: np.ndarray, rows: int) -> Ints:
    """The run of each row, if rows are sorted by cell and value, and every cell is divided into runs of so many."""
    order = np.lexsort((value, cell))
    start = np.flatnonzero(np.diff(cell[order], prepend=-1))
    size = np.diff(np.append(start, len(order)))
    place = np.arange(len(order)) - np.repeat(start, size)
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(place % rows == 0) - 1
    return run


def _skipped(run: Ints, problem: Problem, asked: Sequence[tuple[Predicate, float]]) -> float:
    """Rows x weight that the queries skip."""
    index = index_of_assignment(run, int(run.max()) + 1, problem.sample)
    return sum(weight * float(index.blocks.rows[~index.to_open(p)].sum()) for p, weight in asked)
