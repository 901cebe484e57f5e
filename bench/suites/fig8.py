"""Fig. 8 of the qd-tree paper: the rows that Woodblock's best tree reads over time, on TPC-H's month, without Spark.

The tables are those of `tpch-month`. The queries are the paper's own: template 9 has no condition. The paper does not
name its month, but its random blocks of 100,000 rows read 56 %, as many as have dates of the month. The dates of 59 %
of our queries are in 1996-09. In 1995-03 they are 67 %, for all queries of template 3 have days of that month.

A line has the share of the month that the final layout reads, for learned and for unseen queries. The curve, also drawn
on standard error, is the share of the sample that the leaves of the best tree read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from bench.data.tpch_templates import PAPERS, conditions, queries
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
    ("qdtree", {"recurrence": 1}),
    ("qdtree", {}),
    ("qdtree", {"effort": "thorough"}),
)


def run(options: Options) -> Iterator[dict[str, Any]]:
    for name in options.months or MONTHS:
        data = load(name, options)
        for learner, params in options.cases(CASES):
            if options.form == "quick" and learner == "woodblock" and not options.learners:
                params = {**params, "budget_seconds": QUICK_SECONDS}
            yield measured(data, (learner, params), options.form, options.seed)


def load(month: str, options: Options) -> InMemory:
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    seeds = tuple(zip((options.seed, ~options.seed), PER_TEMPLATE[options.form], strict=True))
    texts, matching_conditions = (
        [[sql for _, sql in queries(*s, PAPERS)] for s in seeds],
        [conditions(*s, PAPERS) for s in seeds],
    )
    return in_memory("fig8", month, options, texts, matching_conditions)


def in_memory(
    suite: str,
    month: str,
    options: Options,
    texts: Sequence[Sequence[str]],
    matching_conditions: Sequence[Sequence[str]],
    **params: Any,
) -> InMemory:
    """Load a month with learned and unseen queries, which are given as SQL texts and as conditions."""
    scale = options.sf or SCALE[options.form]
    folder = wide(scale, month)
    schema = as_schema(pq.read_schema(next(folder.glob("*.parquet"))))
    learned, unseen = (Workload.from_sql(some).on("tpch").bind({"tpch": schema}) for some in texts)
    columns = {c.path[0] for p in (*predicates_of(learned), *predicates_of(unseen)) for c in columns_of(p)}
    table = pq.read_table(folder, columns=sorted(columns))
    matched, matched_unseen = (fmean(matching(table, some)) for some in matching_conditions)
    block_rows = max(1, round(scale * BLOCK_ROWS_PER_SF[options.form]))
    return InMemory(
        suite, table, learned, unseen, (matched, matched_unseen), block_rows, {"sf": scale, "month": month}, params
    )
