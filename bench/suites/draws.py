"""TPC-H's month with literals drawn in four ways, to try learners on queries that they were not tuned to.

There are ten learned queries of each template, and twenty unseen ones; `bench/data/tpch_draws` describes the ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.data.tpch_draws import WAYS, queries
from bench.data.tpch_wide import MONTHS
from bench.memory import measured
from bench.options import ALGORITHM_1, Case, Options
from bench.suites.fig8 import in_memory

PER_TEMPLATE = {"quick": (6, 8), "full": (10, 20)}  # queries to learn from, and unseen ones
CASES: tuple[Case, ...] = (ALGORITHM_1, ("qdtree", {"recurrence": 1}), ("qdtree", {"cells": 6}), ("qdtree", {}))


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in options.months or MONTHS[:1]:
        for way in WAYS:
            learned, unseen = PER_TEMPLATE[options.form]
            drawn = queries(way, options.seed, learned), queries(way, ~options.seed, unseen, unseen=True)
            texts, conditions = ([[query[part] for query in some] for some in drawn] for part in (0, 1))
            data = in_memory("draws", name, options, texts, conditions, literals=way)
            for case in options.cases(CASES):
                yield measured(data, case, options.form, options.seed)
