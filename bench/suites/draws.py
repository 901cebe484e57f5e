"""TPC-H's month when literals are drawn in four ways: does what is learned serve queries that nobody tuned it to?

Ten queries of each template are learned from, twenty others are unseen; see `bench/data/tpch_draws` for the ways.
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
            known, others = PER_TEMPLATE[options.form]
            asked = queries(way, options.seed, known), queries(way, ~options.seed, others, unseen=True)
            texts, conditions = ([[query[part] for query in some] for some in asked] for part in (0, 1))
            data = in_memory("draws", name, options, texts, conditions, literals=way)
            for case in options.cases(CASES):
                yield measured(data, case, options.form, options.seed)
