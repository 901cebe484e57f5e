"""Compare estimated seconds with measured ones, for rewrites and for queries.

For each of three tables `calibrate` times rewrites of two small parts. Then the whole table is rewritten with no
condition in the index, with some and with all. A line's `ratio` is the estimated seconds of a rewrite divided by the
measured ones. The thesis fits such a cost (5.1) and does not publish its errors. Its Table 5.1 is about skipped volume:
see the suite `features`. `learn` estimates the seconds of queries before and after.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.data import errorlog_data, errorlog_queries
from bench.data.cache import cache_folder
from bench.data.zcurves_tables import queries, table_of, write
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = {"quick": 0.1, "full": 3.0}
ROWS = {"quick": 100_000, "full": 4_000_000}
QUERIES, WARM = 60, 12
ITEMS = (0, 20, 120)  # conditions and expressions in the index, at most


def _lineitem(to: Path, options: Options) -> Sequence[str]:
    scale = options.sf or SCALE[options.form]
    shutil.copytree(tpch.lineitem(cache_folder() / "growth", scale, parts=16), to)
    return tpch.questions(QUERIES, scale, options.seed)


def _errors(to: Path, options: Options) -> Sequence[str]:
    shutil.copytree(errorlog_data.table(errorlog_data.INTERNAL, ROWS[options.form]), to)
    return errorlog_queries.queries(errorlog_data.INTERNAL, options.seed, QUERIES)


def _flights(to: Path, options: Options) -> Sequence[str]:
    table = table_of("flights", ROWS[options.form])
    write(table, to)
    return queries("flights", table, QUERIES, options.seed)


# Each function writes its table into a folder and returns the texts of queries.
TABLES: dict[str, Callable[[Path, Options], Sequence[str]]] = {
    "lineitem": _lineitem,
    "errors": _errors,
    "flights": _flights,
}


def run(options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for table, write_table in TABLES.items():
            source = folder / table
            yield from _measured(spark, source, write_table(source, options), options)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measured(spark: SparkSession, source: Path, texts: Sequence[str], options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr
    from hedgerow.pipeline.calibrated_cost import count_items

    workload = hr.Workload.from_sql(texts)
    size = sum(file.stat().st_size for file in source.glob("*.parquet"))
    progress(f"estimates: {source.name}, {size >> 20:,} MB, small rewrites")
    begun = time.perf_counter()
    cost = hr.calibrate(spark, str(source), workload)
    calibrated = time.perf_counter() - begun
    learned = hr.learn(spark, str(source), workload, options=hr.LearnOptions(seed=options.seed))
    rewritten = {}
    for most in ITEMS:
        items, place = count_items(learned, most), f"{source}-{most}"
        progress(f"estimates: {source.name}, {items} conditions")
        begun = time.perf_counter()
        written = hr.apply(spark, str(source), learned, place, hr.WriteOptions(statistics=most))
        rewritten[most] = place, items, written, time.perf_counter() - begun
    # Queries come last: Java compiles them in the background for long, which would slow a rewrite by a third.
    before = _mean_seconds(spark, learned.table, str(source), texts)
    attached = spark.newSession()
    hr.attach(attached)
    for most, (place, items, written, took) in rewritten.items():
        estimated, after = cost.seconds(size, items), _mean_seconds(attached, learned.table, place, texts)
        yield line(
            suite="estimates",
            learner="qdtree",
            params={"form": options.form, "table": source.name, "statistics": most},
            rows=int(written.known.rows.sum()),
            blocks=learned.blocks,
            queries=len(texts),
            ratio=round(estimated / took, 2),
            details={
                "megabytes": size >> 20,
                "conditions": items,
                "estimated_seconds": round(estimated, 1),
                "seconds": round(took, 1),
                "calibrating_seconds": round(calibrated, 1),
                **_estimated(learned.seconds()),
                "query_seconds": [round(before, 3), round(after, 3)],
            },
            seed=options.seed,
        )


def _estimated(seconds: Mapping[str, float | None]) -> dict[str, list[float]]:
    """Return the estimated seconds of a query before and after; none if the table is too small for an estimate."""
    estimates = [second for name in ("seconds_now", "seconds") if (second := seconds[name]) is not None]
    return {"query_estimated": [round(second, 3) for second in estimates]} if estimates else {}


def _mean_seconds(spark: SparkSession, name: str, place: str, texts: Sequence[str]) -> float:
    """Return the mean seconds of the queries, after some to warm up."""
    spark.read.parquet(place).createOrReplaceTempView(name)
    for text in texts[:WARM]:
        _seconds(spark, text)
    return fmean(_seconds(spark, text) for text in texts)


def _seconds(spark: SparkSession, text: str) -> float:
    begun = time.perf_counter()
    spark.sql(text).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun
