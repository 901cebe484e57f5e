"""Fig. 3 of the qd-tree paper (5.1): an OR that no single cut helps, in memory and without Spark.

    1 +-----+--------------------------+-----+     Q1  cpu < 10 OR cpu > 90     the two sides
      |  Q1 |                          |  Q1 |     Q2  disk < 0.01              the strip at the bottom
      |     |                          |     |
      +-----+--------------------------+-----+     Neither cut on cpu lets a query skip anything, so a greedy tree
    0 +--Q2-+-----------Q2-------------+-Q2--+     cuts by disk and stops: (1 + .01) / 2 = 50.5 %.
      0    10                         90   100

The paper's best layout has four blocks: the strip, the two sides above it, and the middle. It reads
(.01 + .99 * .2 + .01) / 2 = 10.9 % (the paper says 10.4 %, of its own draw). Only blocks of less than a thousandth of
the rows could divide the strip as well, for the 10.5 % that match. The paper does not say how large its blocks are:
here it is half the strip.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from bench.options import Case, Options
from bench.record import line, progress
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.workload.candidate_cuts import USUAL
from hedgerow.pipeline.learner_names import make_learner
from hedgerow.sql.workload import Workload

ROWS, BLOCK_ROWS = {"quick": 20_000, "full": 200_000}, 0.005
QUERIES = ("SELECT * FROM machines WHERE cpu < 10 OR cpu > 90", "SELECT * FROM machines WHERE disk < 0.01")
# `cuts` is for the problem, all else for the learner.
CASES: tuple[Case, ...] = (
    ("qdtree", {"criterion": "skip", "cells": 1, "cuts": "atoms"}),  # Algorithm 1
    ("qdtree", {"criterion": "skip", "cells": 1, "cuts": "atoms+subtrees"}),
    ("qdtree", {}),
    ("woodblock", {"budget_seconds": 30, "target": 0.1095}),
)


def run(options: Options) -> Iterator[dict[str, Any]]:
    rows = ROWS[options.form]
    sample = Sample.of_table(machines(rows, options.seed))
    workload = Workload.from_sql(QUERIES).bind({"machines": sample.schema})
    predicates = tuple(q.predicate("machines") for q in workload)
    for learner, params in options.cases(CASES):
        progress(f"fig3: {learner} {dict(params)}")
        own = {name: value for name, value in params.items() if name != "cuts"}
        kind = params.get("cuts", USUAL)
        start = time.perf_counter()
        problem = Problem.build(sample, predicates, round(BLOCK_ROWS * rows), cuts=kind, seed=options.seed)
        layout = make_learner(learner, **own).fit(problem)
        seconds = time.perf_counter() - start
        score = score_layout(layout, sample, workload.queries, "machines")
        yield line(
            suite="fig3",
            learner=learner,
            params={"form": options.form, **params},
            rows=rows,
            blocks=score.blocks,
            block_rows=problem.block_rows,
            queries=len(workload),
            bound=round(score.selectivity or 0.0, 4),
            rows_read=round(score.rows_read, 4),
            blocks_read=round(score.blocks_read, 4),
            learn_seconds=round(seconds, 2),
            seed=options.seed,
        )
        assert score.selectivity is None or score.rows_read >= score.selectivity, "less was read than matches"


def machines(rows: int, seed: int) -> pa.Table:
    r = np.random.default_rng(seed)
    return pa.table({"cpu": r.uniform(0, 100, rows), "disk": r.uniform(0, 1, rows)})
