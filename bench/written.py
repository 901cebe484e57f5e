"""A table under Spark and under Comet, which is loaded where HEDGEROW_COMET_JAR names its jar.

Under each engine, the same queries run on the tables of the same rows: the files as another writer made them, those
written again by Spark in their order (unless that is the sort), a sort, Delta's ZORDER and liquid clustering, and ours,
which is read with and without Hedgerow. The answers are equal. A line's ratio is that of ours, attached, to the best
other table. For a large table, `--param tables=again,sorted,clustering` names the others, and `--param turns=1` times
each query once. Where the disk has no room for all, `--param sorts=4` writes each other table by itself, times it
beside ours and deletes it; so many jobs write the sort, and shuffles are packed tighter. `--param waves=2` writes ours
in waves. `--param folder=PLACE` keeps ours, its layout and copies in a folder: a run that was cut off goes on there,
and gives the seconds of what it wrote itself.
`run_in_store` times the same tables in an object store.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from bench.comet import VARIABLE, comet_settings, on_class_path
from bench.data.object_store import BUCKET, ObjectStore, settings
from bench.options import Case, Options, learn_arguments
from bench.physical import PEERS, TURNS, Physical, Way, peers_of, timed
from bench.record import line, progress
from bench.watched import peak_memory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tables = Mapping[str, tuple[str, str]]  # name: format and place
Seconds = Mapping[str, float]
_MEMORY = "4g"
_DELAY = 0.03  # seconds until the store answers
AGAIN = "again"


def run(data: Physical, options: Options) -> Iterator[dict[str, Any]]:
    """Measure on this machine's disk, under Spark and, where its jar is named, under Comet."""
    import hedgerow

    folder = Path(options.params.get("folder") or tempfile.mkdtemp(prefix="hedgerow-bench-"))
    jar = os.environ.get(VARIABLE)
    # A JVM outlives its sessions, so the first one has the jar on its class path, too.
    little_room = "sorts" in options.params
    shuffles = {"spark.io.compression.codec": "zstd"} if little_room else {}
    spark = hedgerow.session(_MEMORY, "local[2]", **shuffles, **(on_class_path(jar) if jar else {}))
    try:
        if little_room:
            yield from _one_by_one(spark, data, options, folder)
            return
        tables = _written(spark, data, options, folder)
        yield _measured(spark, "spark", data, options, tables)
        if jar:
            spark.stop()
            spark = hedgerow.session(_MEMORY, "local[2]", **comet_settings())
            yield _measured(spark, "comet", data, options, tables)
    finally:
        spark.stop()
        if "folder" not in options.params:
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


def _one_by_one(spark: SparkSession, data: Physical, options: Options, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure ours beside one other table after the other, so the disk holds the source, ours and one more."""
    with peak_memory(os.getpid()) as peaks:
        ours, own_seconds = _write_ours(spark, data, options, folder)
    for name in _named(data, options):
        others, seconds = _write_others(spark, data, options, [name], folder)
        details = {"memory": peaks, "written_seconds": {**seconds, **own_seconds}}
        yield _measured(spark, "spark", data, options, {**others, **ours}, details=details)
        shutil.rmtree(folder / name, ignore_errors=True)


def _written(spark: SparkSession, data: Physical, options: Options, folder: Path) -> Tables:
    """Write the tables; return their formats and places."""
    others, _ = _write_others(spark, data, options, _named(data, options), folder)
    ours, _ = _write_ours(spark, data, options, folder)
    return {**others, **ours}


def _write_others(
    spark: SparkSession, data: Physical, options: Options, named: Collection[str], folder: Path
) -> tuple[Tables, Seconds]:
    source, files = str(data.source), data.files or 1
    ways = peers_of(spark, data, files, folder, named, int(options.params.get("sorts", 1)))
    seconds = {way.name: way.seconds for way in ways if way.seconds}
    places = {name: source if name == "source" else str(folder / name) for name in PEERS if name in named}
    if AGAIN in named:
        progress(f"{data.suite}: written again in its order")
        places[AGAIN] = str(folder / AGAIN)
        rows, begun = ds.dataset(data.source).count_rows(), time.perf_counter()
        if not Path(places[AGAIN], "_SUCCESS").exists():
            in_files = spark.read.parquet(source).write.option("maxRecordsPerFile", rows // files)
            in_files.mode("overwrite").parquet(places[AGAIN])
            seconds[AGAIN] = time.perf_counter() - begun
    formats = {"zorder": "delta", "clustering": "delta"}
    return {name: (formats.get(name, "parquet"), place) for name, place in places.items()}, _rounded(seconds)


def _write_ours(spark: SparkSession, data: Physical, options: Options, folder: Path) -> tuple[Tables, Seconds]:
    import hedgerow

    source, ours = str(data.source), str(folder / "ours")
    rows = ds.dataset(data.source).count_rows()
    size = sum(file.stat().st_size for file in data.source.glob("*.parquet"))
    waves = int(options.params.get("waves", 1))
    wave_bytes = f"{int(1.05 * size / waves)}B"  # waves have whole files of the source
    case: Case = ("qdtree", {"lookup_share": data.lookup_share})
    arguments = learn_arguments(case, block_rows=rows // (data.files or 1), seed=options.seed)
    progress(f"{data.suite}: learning and writing ours")
    layout, seconds, begun = folder / "layout.json", dict[str, float](), time.perf_counter()
    folder.mkdir(exist_ok=True)
    if not layout.exists():
        hedgerow.learn(spark, source, data.learned, table=data.name, **arguments).save(str(layout))
        seconds["learned"] = time.perf_counter() - begun
    if not Path(ours).exists():
        begun, written = (
            time.perf_counter(),
            hedgerow.WriteOptions(lookup_share=data.lookup_share, wave_bytes=wave_bytes),
        )
        hedgerow.apply(spark, source, hedgerow.Learned.load(str(layout)), ours, written)
        seconds["ours"] = time.perf_counter() - begun
    return {"ours": ("parquet", ours), "attached": ("parquet", ours)}, _rounded(seconds)


def _rounded(seconds: Seconds) -> Seconds:
    progress(f"seconds of writing: {seconds}")
    return {name: round(of, 1) for name, of in seconds.items()}


def _named(data: Physical, options: Options) -> list[str]:
    """Return the other tables, in the order in which they are asked for: by default all, but for a copy of a sort."""
    if "tables" in options.params:
        return str(options.params["tables"]).split(",")
    return [*PEERS, *([] if data.came_sorted else [AGAIN])]


def _measured(
    spark: SparkSession,
    engine: str,
    data: Physical,
    options: Options,
    tables: Tables,
    before: Callable[[], object] = lambda: None,
    details: Mapping[str, Any] = MappingProxyType({}),
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
        params={"form": options.form, "engine": engine, **{k: v for k, v in options.params.items() if k != "folder"}},
        **data.fields,
        rows=ds.dataset(data.source).count_rows(),
        queries=len(data.learned),
        queries_unseen=len(data.timed),
        ratio=round(seconds["attached"] / min(seconds[name] for name in peers), 3),
        details={
            **details,
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
