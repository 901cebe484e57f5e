"""lineitem in an object store that takes 30 ms for each request: queries of the table as it came, and attached.

Files of this machine's S3 server lie in its memory, so seconds are those of requests and of decoding. Hadoop's input
stream keeps what it read, which at this size is the whole table; so it is opened anew for each query, by both alike.
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
QUERIES, TIMES = 120, 3
FILES = 16  # for each unit of the scale factor: about 16 MB each, for the server copies a file for each request to it


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr

    scale = options.sf or SCALE[options.form]
    local = tpch.lineitem(cache_folder() / "object-store", scale, parts=max(1, round(FILES * scale)))
    store = ObjectStore()
    spark = hr.session("4g", "local[2]", **settings(store.url))
    spark.sparkContext.setLogLevel("ERROR")
    source, ours = f"s3a://{BUCKET}/lineitem", f"s3a://{BUCKET}/ours"
    try:
        store.upload(Path(local), "lineitem")
        store.delay = DELAY
        progress(f"object-store: lineitem, scale factor {scale:g}")
        verbs: dict[str, dict[str, float]] = {}
        workload = hr.Workload.from_sql(tpch.questions(QUERIES, scale, options.seed))
        learned = _timed(store, verbs, "learn", lambda: hr.learn(spark, source, workload))
        table = _timed(store, verbs, "apply", lambda: hr.apply(spark, source, learned, ours))
        _timed(store, verbs, "verify", table.verify)
        hr.attach(spark)
        for kind, text in enumerate(tpch.questions(tpch.KINDS, scale, ~options.seed)):
            times = _alternated(spark, store, text, {"plain": source, "attached": ours})
            medians = {way: statistics.median(found[0]) for way, found in times.items()}
            yield line(
                suite="object-store",
                learner="qdtree",
                params={"form": options.form, "kind": kind + 1, "delay_ms": round(DELAY * 1000)},
                sf=scale,
                blocks=len(table.known),
                ratio=round(medians["attached"] / medians["plain"], 3),
                details={
                    **{f"{way}_ms": round(1000 * seconds) for way, seconds in medians.items()},
                    **{f"{way}_requests": round(found[1] / TIMES) for way, found in times.items()},
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
    """The seconds of each way, and the number of its requests; each is warmed once."""
    found: dict[str, tuple[list[float], int]] = {way: ([], 0) for way in places}
    answers = set()
    for i in range(TIMES + 1):
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
                found[way] = [*found[way][0], seconds], found[way][1] + requests
    if len(answers) != 1:
        raise SystemExit(f"object-store: two answers to {text}")
    return found
