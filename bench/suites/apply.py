"""Time the rewrite of a table, beside a plain Spark read, sort and write of the same rows in the same run.

The plain way is `repartitionByRange(files, column).sortWithinPartitions(column)`, into as many files as the layout has
blocks. Each layout and its plain way take turns, several times; the medians count.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.options import ALGORITHM_1, Options, learn_arguments
from bench.record import line, progress
from bench.suites import tpch

SCALE, TURNS = {"quick": 0.03, "full": 1.34}, {"quick": 1, "full": 2}
BLOCKS_DIVIDED_BY = {"quick": 10, "full": 1}
QUERIES = {"quick": 50, "full": 150}
COLUMN = "l_shipdate"
# Learner, number of blocks, share of the mean block: a tree's leaves may be larger than the minimum, so it is smaller.
CASES = (("range", 100, 1.0), ("zorder", 100, 1.0), ("qdtree", 500, 0.6))


def run(options: Options) -> Iterator[dict[str, Any]]:
    form, seed = options.form, options.seed
    scale = options.sf or SCALE[form]
    import hedgerow
    from hedgerow.spark.start.session import local_session

    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        source = tpch.lineitem(folder, scale)
        rows = spark.read.parquet(source).count()
        workload = hedgerow.Workload.from_sql(tpch.questions(QUERIES[form], scale, seed))
        for learner, blocks, share in CASES:
            progress(f"apply: {learner}")
            params: Mapping[str, Any] = {"range": {"columns": (COLUMN,)}, "qdtree": ALGORITHM_1[1]}.get(learner, {})
            start = time.perf_counter()
            least = max(100, round(share * rows / blocks * BLOCKS_DIVIDED_BY[form]))
            arguments = learn_arguments((learner, params), block_rows=least, seed=seed)
            learned = hedgerow.learn(spark, source, workload, **arguments)
            seconds = time.perf_counter() - start

            def plain(files: int = learned.blocks) -> None:
                sorted_ = spark.read.parquet(source).repartitionByRange(files, COLUMN).sortWithinPartitions(COLUMN)
                sorted_.write.mode("overwrite").parquet(str(folder / "plain"))

            def ours(learned: hedgerow.Learned = learned) -> None:
                hedgerow.apply(
                    spark,
                    source,
                    learned,
                    str(folder / "ours"),
                    hedgerow.WriteOptions(sort_by=(COLUMN,)),
                    overwrite=True,
                )

            plain_times, our_times = [], []
            for _ in range(TURNS[form]):
                plain_times.append(_seconds(plain))
                our_times.append(_seconds(ours))
            table = hedgerow.table(spark, str(folder / "ours"))
            yield line(
                suite="apply",
                learner=learner,
                params={"form": form, "cores": 2},
                sf=scale,
                rows=rows,
                blocks=len(table.known),
                block_rows=least,
                queries=len(workload),
                rows_read=round(table.score(workload).rows_read, 4),
                learn_seconds=round(seconds, 1),
                apply_seconds=[round(t, 1) for t in our_times],
                details={"plain_seconds": [round(t, 1) for t in plain_times]},
                ratio=round(statistics.median(our_times) / statistics.median(plain_times), 2),
                seed=seed,
            )
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
