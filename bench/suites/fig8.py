"""Fig. 8 of the qd-tree paper: what Woodblock's best tree reads as time goes by, on TPC-H's month, without Spark.

The table and the queries are those of `tpch-month`. A line tells what the layout reads of the whole month in the end,
of the queries learned from and of unseen ones; the curve, which is drawn on standard error, is what the leaves of the
best tree read of the sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from bench.data.tpch_templates import conditions, queries
from bench.data.tpch_wide import MONTHS, wide
from bench.matching import matching
from bench.memory import InMemory, measured, predicates_of
from bench.options import ALGORITHM_1, WOODBLOCK, Case, Options
from bench.suites.tpch_month import BLOCK_ROWS_PER_SF, PER_TEMPLATE
from hedgerow.core.predicates.nodes import columns_of
from hedgerow.core.predicates.schema import as_schema
from hedgerow.sql.workload import Workload

SCALE = {"quick": 0.1, "full": 1.0}
QUICK_SECONDS = 5
CASES: tuple[Case, ...] = (
    ALGORITHM_1,
    WOODBLOCK,
    ("qdtree", {}),
    ("woodblock", {"budget_seconds": 300}),
)


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in options.months or MONTHS[:1]:
        data = load(name, options)
        for learner, params in options.cases(CASES):
            if options.form == "quick" and learner == "woodblock" and not options.learners:
                params = {**params, "budget_seconds": QUICK_SECONDS}
            yield measured(data, (learner, params), options.form, options.seed)


def load(month: str, options: Options) -> InMemory:
    # Learned seeds are 0 and more, so these are never among them.
    seeds = tuple(zip((options.seed, ~options.seed), PER_TEMPLATE[options.form], strict=True))
    texts, asked = ([[sql for _, sql in queries(*s)] for s in seeds], [conditions(*s) for s in seeds])
    return in_memory("fig8", month, options, texts, asked)


def in_memory(
    suite: str,
    month: str,
    options: Options,
    texts: Sequence[Sequence[str]],
    asked: Sequence[Sequence[str]],
    **params: Any,
) -> InMemory:
    """A month with the SQL texts and the conditions of the queries to learn from, and of the unseen ones."""
    scale = options.sf or SCALE[options.form]
    folder = wide(scale, month)
    schema = as_schema(pq.read_schema(next(folder.glob("*.parquet"))))
    learned, unseen = (Workload.from_sql(some).on("tpch").bind({"tpch": schema}) for some in texts)
    columns = {c.path[0] for p in (*predicates_of(learned), *predicates_of(unseen)) for c in columns_of(p)}
    table = pq.read_table(folder, columns=sorted(columns))
    matched, matched_unseen = (fmean(matching(table, some)) for some in asked)
    block_rows = max(1, round(scale * BLOCK_ROWS_PER_SF[options.form]))
    return InMemory(
        suite, table, learned, unseen, (matched, matched_unseen), block_rows, {"sf": scale, "month": month}, params
    )
