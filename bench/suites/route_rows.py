"""Measure how many rows a second Spark routes to their leaves, beside counting the same rows without routing."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.options import ALGORITHM_1, Options, learn_arguments
from bench.record import line, progress
from bench.suites import tpch

SCALE, LEAVES, TURNS = {"quick": 0.05, "full": 1.34}, (100, 800), 5
QUERIES = 400


def run(options: Options) -> Iterator[dict[str, Any]]:
    form, seed = options.form, options.seed
    scale = options.sf or SCALE[form]
    import hedgerow
    from hedgerow.spark.compute.assign_blocks import settings_for
    from hedgerow.spark.start.session import configured, local_session

    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        source = tpch.lineitem(folder, scale)
        rows = spark.read.parquet(source).count()
        workload = hedgerow.Workload.from_sql(tpch.questions(QUERIES, scale, seed))
        for leaves in LEAVES:
            progress(f"route-rows: {leaves} leaves")
            learned = _tree(spark, source, workload, rows, leaves, seed)
            ways: dict[str, Callable[[Any], None]] = {
                "routed": lambda layout: _routed(spark, source, layout),
                "plain": lambda layout: _plain(spark, source, layout),
            }
            times: dict[str, list[float]] = {"routed": [], "plain": []}
            with configured(spark, **settings_for(learned.layout)):
                for turn in range(TURNS + 1):
                    for name, way in ways.items():
                        start = time.perf_counter()
                        way(learned.layout)
                        if turn:  # the first is for compiling
                            times[name].append(time.perf_counter() - start)
            speed = {name: rows / statistics.median(t) / 1e6 for name, t in times.items()}
            yield line(
                suite="route-rows",
                learner="qdtree",
                params={"form": form, "leaves": leaves},
                sf=scale,
                rows=rows,
                blocks=learned.blocks,
                mrows_per_s=round(speed["routed"], 2),
                details={"features": len(learned.layout.features), "plain_mrows_per_s": round(speed["plain"], 2)},
                ratio=round(speed["plain"] / speed["routed"], 2),
                seed=seed,
            )
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _routed(spark: Any, source: str, layout: Any) -> None:
    """Route the rows of a new frame, because Spark reuses the shuffles of an old one."""
    from hedgerow.spark.compute.assign_blocks import BLOCK, with_block
    from hedgerow.spark.storage.source import schema_of

    frame = spark.read.parquet(source)
    with_block(frame, layout, schema_of(frame.schema)).groupBy(BLOCK).count().collect()


def _plain(spark: Any, source: str, layout: Any) -> None:
    """Read the same columns and compute a number from them, without a search in a tree."""
    columns = ", ".join(sorted({c for p in layout.features for c in _columns(p)}))
    number = f"pmod(hash({columns}), {layout.blocks}) AS h"
    spark.read.parquet(source).selectExpr(number).groupBy("h").count().collect()


def _tree(spark: Any, source: str, workload: Any, rows: int, leaves: int, seed: int) -> Any:
    """Learn a tree of about so many leaves: the least block is lowered until there are enough."""
    import hedgerow

    least = rows // leaves
    while True:
        learned = hedgerow.learn(
            spark,
            source,
            workload,
            **learn_arguments(ALGORITHM_1, block_rows=least, sample_rows=200_000, seed=seed),
        )
        if learned.blocks >= leaves or least < 100:
            return learned
        least = round(least * max(0.3, learned.blocks / leaves * 0.9))


def _columns(p: Any) -> set[str]:
    from hedgerow.core.predicates.nodes import columns_of
    from hedgerow.core.predicates.sql_text import term_text

    return {term_text(c) for c in columns_of(p)}
