"""Two crash-report logs, in memory: the rows with ErrorLog of Table 2 of the qd-tree paper.

The baseline, as in the paper, is the log in the order of ingestion: once with the bounds that every Parquet file has,
once with our index, which also has few values and noted conditions. `errorlog_data` describes the tables,
`errorlog_queries` the queries: 1,000 to learn from, and 1,000 unseen ones of the same teams.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq

from bench.data.errorlog_data import QUERIED_COLUMNS, Shape, table
from bench.data.errorlog_queries import conditions, queries
from bench.matching import matching
from bench.memory import InMemory, bound, measured
from bench.options import ALGORITHM_1, BOTTOM_UP, TUNED, WOODBLOCK, Case, Options
from bench.report.quality import check
from hedgerow.sql.workload import Workload

ROWS = {"quick": 100_000, "full": 1_000_000}
BLOCKS = {"quick": 200, "full": 2_000}
QUERIES = {"quick": 100, "full": 1_000}
TIMED = {"quick": 6, "full": 30}  # queries, where tables are written
SHARES = 0.3, 0.6  # most rows read, as shares of those read of the log as it came: learned and unseen queries
QUICK: tuple[Case, ...] = (
    ("random", {"recurrence": 1}),  # ignores queries, so none is redrawn
    ("range", {"columns": "ingest_time", "recurrence": 1, "index": "bounds"}),
    ("range", {"columns": "ingest_time", "recurrence": 1}),
    ALGORITHM_1,
    ("qdtree", {}),
)
CASES: dict[str, tuple[Case, ...]] = {
    "quick": QUICK,
    "full": (
        *QUICK,
        BOTTOM_UP,
        TUNED,
        ("bottom_up", {}),
        ("sop_zorder", {}),
        ("woodblock", {**WOODBLOCK[1], "budget_seconds": 120}),
    ),
}


def run(shape: Shape, options: Options) -> Iterator[dict[str, Any]]:
    data = load(shape, options)
    lines = []
    for case in options.cases(CASES[options.form]):
        lines.append(measured(data, case, options.form, options.seed))
        yield lines[-1]
    check(lines, "range", *SHARES)


def physical(shape: Shape, options: Options) -> Iterator[dict[str, Any]]:
    """Time queries on written tables, beside peers."""
    from bench.physical import Physical, run

    folder = table(shape, ROWS[options.form])
    learned = Workload.from_sql(queries(shape, options.seed, QUERIES[options.form]))
    timed = [("all", sql) for sql in queries(shape, ~options.seed, TIMED[options.form])]
    data = Physical(f"{shape.name}-physical", "errors", folder, learned, timed, "os_build_date")
    yield from run(data, [("qdtree", {})], options)


def load(shape: Shape, options: Options) -> InMemory:
    form = options.form
    folder = table(shape, ROWS[form])
    rows = pq.read_table(folder, columns=["ingest_time", *QUERIED_COLUMNS])
    seeds = (options.seed, ~options.seed)  # ~seed is negative, so never the seed of learned queries
    learned, unseen = (bound(queries(shape, s, QUERIES[form]), rows) for s in seeds)
    matched, matched_unseen = (fmean(matching(rows, conditions(shape, s, QUERIES[form]))) for s in seeds)
    return InMemory(shape.name, rows, learned, unseen, (matched, matched_unseen), ROWS[form] // BLOCKS[form])
