"""Fig. 4 of the qd-tree paper: four queries that share one row in the middle, with overlap and without.

Each query selects N + 1 rows. A tree puts the middle row into one of four blocks, so each of the other three queries
reads N rows too many. With overlap, all four blocks hold the row, and no query reads too many.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.options import Options
from bench.record import line, progress
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.learning.virtual_blocks import virtual_index
from hedgerow.core.predicates.nodes import And, Compare, Predicate, col, lit
from hedgerow.core.workload.queries import Workload
from hedgerow.learners.qdtree.qdtree import QdTree

SIZES = {"quick": 10_000, "full": 250_000}
# Bounds of x and y, (from, below, from, below); the middle is 4 <= x < 6, 4 <= y < 6.
QUERIES = ((0, 6, 4, 6), (4, 10, 4, 6), (4, 6, 0, 6), (4, 6, 4, 10))
ARMS = ((0, 4, 4, 6), (6, 10, 4, 6), (4, 6, 0, 4), (4, 6, 6, 10))


def data(n: int, seed: int) -> pa.Table:
    """Return `n` rows in each arm of a cross, and one in the middle."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([*(rng.uniform(a, b, n) for a, b, _, _ in ARMS), [5.0]])
    y = np.concatenate([*(rng.uniform(a, b, n) for _, _, a, b in ARMS), [5.0]])
    return pa.table({"x": x, "y": y})


def queries() -> tuple[Predicate, ...]:
    def within(name: str, low: float, high: float) -> tuple[Predicate, ...]:
        return Compare(col(name), ">=", lit(float(low))), Compare(col(name), "<", lit(float(high)))

    return tuple(And((*within("x", a, b), *within("y", c, d))) for a, b, c, d in QUERIES)


def run(options: Options) -> Iterator[dict[str, Any]]:
    n, seed = SIZES[options.form], options.seed
    sample = Sample.of_table(data(n, seed))
    problem = Problem.build(sample, queries(), n)
    for learner in (QdTree("skip", cells=1), QdTree("skip", overlap=True)):
        began = time.perf_counter()
        layout = learner.fit(problem)
        seconds = time.perf_counter() - began
        score = score_layout(layout, sample, Workload.of("t", problem.predicates).queries, "t")
        rows = [round(q.rows_read * len(sample)) for q in score.queries]
        stored = int(virtual_index(layout, sample).blocks.rows.sum())
        progress(
            f"fig4: {'with' if learner.overlap else 'without'} overlap the queries read {rows} rows, "
            f"{sum(rows) - 4 * (n + 1):,} too many; {stored - len(sample):,} of {len(sample):,} rows are stored again"
        )
        yield line(
            suite="fig4",
            learner="qdtree",
            params={"form": options.form, "overlap": learner.overlap},
            rows=len(sample),
            blocks=layout.blocks,
            block_rows=n,
            queries=4,
            bound=score.selectivity,
            rows_read=score.rows_read,
            ratio=stored / len(sample),  # rows stored for each row of the table
            learn_seconds=round(seconds, 3),
            seed=seed,
        )
