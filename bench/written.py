"""A table under Spark and under Comet, which is loaded where HEDGEROW_COMET_JAR names its jar.

Under each engine, the same queries run on the tables of the same rows: the files as another writer made them, those
written again by Spark in their order (unless that is the sort), a sort, Delta's ZORDER and liquid clustering, and ours,
which is read with and without Hedgerow. The answers are equal. A line's ratio is that of ours, attached, to the best
other table. For a large table, `--param tables=again,sorted,clustering` names the others, and `--param turns=1` times
each query once.
`run_in_store` times the same tables in an object store.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from bench.comet import VARIABLE, comet_settings, on_class_path
from bench.data.object_store import BUCKET, ObjectStore, settings
from bench.options import Case, Options, learn_arguments
from bench.physical import PEERS, TURNS, Physical, Way, peers_of, timed
from bench.record import line, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tables = Mapping[str, tuple[str, str]]  # name: format and place
_MEMORY = "4g"
_DELAY = 0.03  # seconds until the store answers
AGAIN = "again"


def run(data: Physical, options: Options) -> Iterator[dict[str, Any]]:
    """Measure on this machine's disk, under Spark and, where its jar is named, under Comet."""
    import hedgerow

    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    jar = os.environ.get(VARIABLE)
    # A JVM outlives its sessions, so the first one has the jar on its class path, too.
    spark = hedgerow.session(_MEMORY, "local[2]", **(on_class_path(jar) if jar else {}))
    try:
        tables = _written(spark, data, options, folder)
        yield _measured(spark, "spark", data, options, tables)
        if jar:
            spark.stop()
            spark = hedgerow.session(_MEMORY, "local[2]", **comet_settings())
            yield _measured(spark, "comet", data, options, tables)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def run_in_store(data: Physical, options: Options) -> Iterator[dict[str, Any]]:
    """Measure in an object store that answers each request after 30 ms; nothing is cached between queries."""
    import hedgerow

    folder, store = Path(tempfile.mkdtemp(prefix="hedgerow-bench-")), ObjectStore()
    spark = hedgerow.session(_MEMORY, "local[2]", **settings(store.url))
    spark.sparkContext.setLogLevel("ERROR")
    close = spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll  # type: ignore[union-attr]
    try:
        places: dict[str, str] = {}
        tables = {}
        for name, (kind, place) in _written(spark, data, options, folder).items():
            if place not in places:
                places[place] = f"s3a://{BUCKET}/{name}"
                store.upload(Path(place), name)
            tables[name] = kind, places[place]
        store.delay = _DELAY
        yield _measured(spark, "spark in a store", data, options, tables, close)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _written(spark: SparkSession, data: Physical, options: Options, folder: Path) -> Tables:
    """Write the tables; return their formats and places."""
    import hedgerow

    begun = time.perf_counter()
    source, files = str(data.source), data.files or 1
    rows = ds.dataset(data.source).count_rows()
    named = _named(data, options)
    list(peers_of(spark, data, files, folder, named))
    peers = {name: source if name == "source" else str(folder / name) for name in PEERS if name in named}
    if AGAIN in named:
        progress(f"{data.suite}: written again in its order")
        peers[AGAIN] = str(folder / AGAIN)
        spark.read.parquet(source).write.option("maxRecordsPerFile", rows // files).parquet(peers[AGAIN])
    ours = str(folder / "ours")
    case: Case = ("qdtree", {"lookup_share": data.lookup_share})
    arguments = learn_arguments(case, block_rows=rows // files, seed=options.seed)
    progress(f"{data.suite}: learning and writing ours")
    learned = hedgerow.learn(spark, source, data.learned, table=data.name, **arguments)
    hedgerow.apply(spark, source, learned, ours, hedgerow.WriteOptions(lookup_share=data.lookup_share))
    progress(f"{data.suite}: all tables are written after {time.perf_counter() - begun:.0f} s")
    formats = {"zorder": "delta", "clustering": "delta"}
    places = {**peers, "ours": ours, "attached": ours}
    return {name: (formats.get(name, "parquet"), place) for name, place in places.items()}


def _named(data: Physical, options: Options) -> list[str]:
    """Return the other tables that are asked for: by default all, but for a copy of a sort."""
    every = [*PEERS, *([] if data.came_sorted else [AGAIN])]
    return [name for name in every if name in str(options.params.get("tables", ",".join(every))).split(",")]


def _measured(
    spark: SparkSession,
    engine: str,
    data: Physical,
    options: Options,
    tables: Tables,
    before: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    def opened(kind: str, place: str) -> Callable[[], DataFrame]:
        return lambda: spark.read.format(kind).load(place)

    ways = [Way(name, opened(*of), spark.sql, attached=name == "attached") for name, of in tables.items()]
    times = timed(spark, data, ways, before, int(options.params.get("turns", TURNS)))
    seconds = {name: sum(of) for name, of in times.medians.items()}
    peers = [name for name in tables if name not in ("ours", "attached")]
    kinds = list(dict.fromkeys(kind for kind, _ in data.timed))
    by_kind = {kind: [q for q, (own, _) in enumerate(data.timed) if own == kind] for kind in kinds}
    return line(
        suite=data.suite,
        learner="qdtree",
        params={"form": options.form, "engine": engine, **options.params},
        **data.fields,
        rows=ds.dataset(data.source).count_rows(),
        queries=len(data.learned),
        queries_unseen=len(data.timed),
        ratio=round(seconds["attached"] / min(seconds[name] for name in peers), 3),
        details={
            "seconds": {name: round(of, 2) for name, of in seconds.items()},
            "files": {way.name: len(way.table().inputFiles()) for way in ways},
            "files_opened": sum(times.opened.values()),
            "comet_scans": {way.name: sum(map(partial(_by_comet, data, way), data.timed)) for way in ways},
            "decision_ms": round(1000 * median(times.deciding), 1),
            "kind_ms": {
                kind: {name: round(1000 * sum(of[q] for q in own)) for name, of in times.medians.items()}
                for kind, own in by_kind.items()
            },
            "kind_files": {kind: sum(times.opened[q] for q in own) for kind, own in by_kind.items()},
        },
        seed=options.seed,
    )


def _by_comet(data: Physical, way: Way, query: tuple[str, str]) -> int:
    """Return the number of scans of a query that are Comet's."""
    way.table().createOrReplaceTempView(data.name)
    plan = str(way.frame(query[1])._jdf.queryExecution().executedPlan().toString())
    return plan.count("CometNativeScan") + plan.count("CometScan")
