"""Rows that TPC-H's queries read of one month's lines in learned blocks: Table 2 of the qd-tree paper.

There are ten learned queries of each template, and a hundred unseen ones with other literals. A block has 100 rows or
more at scale factor 1 and 1,000 at 10, so a month has up to 780 blocks. `bound` and `bound_unseen` are the shares of
rows that match; no layout reads less. The quick form has fewer queries and larger blocks.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench.data.tpch_templates import conditions, queries
from bench.data.tpch_wide import MONTHS, wide
from bench.matching import matching
from bench.options import ALGORITHM_1, BOTTOM_UP, TUNED, Case, Options, learn_arguments
from bench.record import line, progress
from bench.report.quality import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.sql.workload import Workload

PER_TEMPLATE = {"quick": (4, 8), "full": (10, 100)}  # queries to learn from, and unseen ones
SCALE = {"quick": 0.1, "full": 10.0}
BLOCK_ROWS_PER_SF = {"quick": 1000, "full": 100}
TIMED = {"quick": 1, "full": 2}  # queries of a template, where tables are written
SHARES = 0.8, 0.9  # most rows read, as shares of those read of random blocks: learned and unseen queries
CASES: dict[str, tuple[Case, ...]] = {
    "quick": (("random", {}), ("qdtree", {})),
    "full": (
        ("random", {}),
        ALGORITHM_1,
        ("qdtree", {"recurrence": 1}),
        ("qdtree", {}),
        BOTTOM_UP,
        TUNED,
        ("bottom_up", {}),
        ("sop_zorder", {}),
    ),
}


@dataclass(frozen=True)
class Month:
    """One month's table with its two workloads."""

    name: str
    source: str
    rows: int
    block_rows: int
    learned: Workload
    unseen: Workload
    bound: float
    bound_unseen: float


def run(options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    months = [month_of(options, name) for name in options.months or MONTHS[:1]]
    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for month in months:
            lines = []
            for case in options.cases(CASES[options.form]):
                lines.append(measured(spark, month, case, options, folder / "table"))
                yield lines[-1]
            check(lines, "random", *SHARES)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time queries on written tables, beside peers."""
    from bench.physical import Physical, run

    for name in options.months or MONTHS[:1]:
        month = month_of(options, name)
        timed = queries(~options.seed, TIMED[options.form])
        fields = {"sf": options.sf or SCALE[options.form], "month": name}
        data = Physical("tpch-month-physical", "tpch", Path(month.source), month.learned, timed, "l_shipdate", fields)
        yield from run(data, [("qdtree", {})], options)


def month_of(options: Options, name: str) -> Month:
    from hedgerow.sql.workload import Workload

    scale = options.sf or SCALE[options.form]
    folder = wide(scale, name)
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    seeds = tuple(zip((options.seed, ~options.seed), PER_TEMPLATE[options.form], strict=True))
    learned, unseen = (Workload.from_sql([sql for _, sql in queries(*s)]) for s in seeds)
    table = pq.read_table(folder)
    matched, matched_unseen = (fmean(matching(table, conditions(*s))) for s in seeds)
    block_rows = max(1, round(scale * BLOCK_ROWS_PER_SF[options.form]))
    return Month(name, str(folder), len(table), block_rows, learned, unseen, matched, matched_unseen)


def measured(spark: SparkSession, month: Month, case: Case, options: Options, to: Path) -> dict[str, Any]:
    import hedgerow

    learner, params = case
    shown = ", ".join(f"{name}={value}" for name, value in params.items())
    progress(f"tpch-month: {month.name}, seed {options.seed}, {learner}({shown})")
    start = time.perf_counter()
    layout = hedgerow.learn(
        spark,
        month.source,
        month.learned,
        **learn_arguments(case, block_rows=month.block_rows, seed=options.seed),
    )
    learned_at = time.perf_counter()
    table = hedgerow.apply(spark, month.source, layout, str(to), overwrite=True)
    applied_at = time.perf_counter()
    score, unseen, description = table.score(month.learned), table.score(month.unseen), table.describe()
    return line(
        suite="tpch-month",
        learner=learner,
        params={"form": options.form, **params},
        sf=options.sf or SCALE[options.form],
        month=month.name,
        rows=month.rows,
        blocks=description["blocks"],
        block_rows=month.block_rows,
        least_block=description["rows_per_block"]["least"],
        queries=len(month.learned),
        queries_unseen=len(month.unseen),
        bound=round(month.bound, 4),
        bound_unseen=round(month.bound_unseen, 4),
        rows_read=round(score.rows_read, 4),
        rows_read_unseen=round(unseen.rows_read, 4),
        blocks_read=round(score.blocks_read, 4),
        blocks_read_unseen=round(unseen.blocks_read, 4),
        bytes_read=round(score.bytes_read, 4),
        bytes_read_unseen=round(unseen.bytes_read, 4),
        learn_seconds=round(learned_at - start, 1),
        fit_seconds=layout.fit_seconds,
        apply_seconds=round(applied_at - learned_at, 1),
        seed=options.seed,
    )
