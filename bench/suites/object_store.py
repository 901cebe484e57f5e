"""lineitem in an object store with 30 ms for each request: queries on the source table, and attached.

The S3 server runs on this machine and keeps files in memory, so the seconds come from requests and decoding. Hadoop's
input stream caches data, at this size the whole table; so file systems are closed before each query in both ways.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data.cache import cache_folder
from bench.data.object_store import BUCKET, ObjectStore, settings
from bench.options import Options
from bench.record import line, progress
from bench.suites import tpch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = {"quick": 0.1, "full": 1.0}
DELAY = 0.03
QUERIES, TURNS = 120, 3
FILES = 16  # for each unit of scale: of about 16 MB, because the server copies the file at each request


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr

    scale = options.sf or SCALE[options.form]
    local = tpch.lineitem(cache_folder() / "object-store", scale, parts=max(1, round(FILES * scale)))
    store = ObjectStore()
    spark = hr.session("4g", "local[2]", **settings(store.url))
    spark.sparkContext.setLogLevel("ERROR")
    source, target = f"s3a://{BUCKET}/lineitem", f"s3a://{BUCKET}/ours"
    try:
        store.upload(Path(local), "lineitem")
        store.delay = DELAY
        progress(f"object-store: lineitem, scale factor {scale:g}")
        verbs: dict[str, dict[str, float]] = {}
        workload = hr.Workload.from_sql(tpch.questions(QUERIES, scale, options.seed))
        learned = _timed(store, verbs, "learn", lambda: hr.learn(spark, source, workload))
        table = _timed(store, verbs, "apply", lambda: hr.apply(spark, source, learned, target))
        _timed(store, verbs, "verify", table.verify)
        hr.attach(spark)
        for kind, text in enumerate(tpch.questions(tpch.KINDS, scale, ~options.seed)):
            times = _alternated(spark, store, text, {"plain": source, "attached": target})
            medians = {way: statistics.median(measured[0]) for way, measured in times.items()}
            yield line(
                suite="object-store",
                learner="qdtree",
                params={"form": options.form, "kind": kind + 1, "delay_ms": round(DELAY * 1000)},
                sf=scale,
                blocks=len(table.known),
                ratio=round(medians["attached"] / medians["plain"], 3),
                details={
                    **{f"{way}_ms": round(1000 * seconds) for way, seconds in medians.items()},
                    **{f"{way}_requests": round(measured[1] / TURNS) for way, measured in times.items()},
                    **({} if kind else {"verbs": verbs}),
                },
                seed=options.seed,
            )
    finally:
        spark.stop()


def _timed(store: ObjectStore, verbs: dict[str, dict[str, float]], name: str, work: Any) -> Any:
    store.counted()
    begun = time.perf_counter()
    result = work()
    verbs[name] = {"seconds": round(time.perf_counter() - begun, 1), "requests": store.counted().total()}
    return result


def _alternated(
    spark: SparkSession, store: ObjectStore, text: str, places: dict[str, str]
) -> dict[str, tuple[list[float], int]]:
    """Return the seconds and the number of requests of each way; the first turn warms up."""
    measured: dict[str, tuple[list[float], int]] = {way: ([], 0) for way in places}
    answers = set()
    for i in range(TURNS + 1):
        for way, place in places.items():
            spark.read.parquet(place).createOrReplaceTempView("lineitem")
            spark.conf.set("hedgerow.enabled", str(way == "attached").lower())
            spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]
            store.counted()
            begun = time.perf_counter()
            (row,) = spark.sql(text).collect()
            seconds, requests = time.perf_counter() - begun, store.counted().total()
            answers.add(row)
            if i:
                measured[way] = [*measured[way][0], seconds], measured[way][1] + requests
    if len(answers) != 1:
        raise SystemExit(f"object-store: two answers to {text}")
    return measured
