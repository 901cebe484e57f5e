"""lineitem in blocks of 4 MB, as a file for each block, and as files of many blocks (`WriteOptions.file_bytes`).

The same queries, unseen ones, run on the tables of one layout, with Hedgerow and without it. On this machine's disk all
caches are warm; in an object store that answers each request after 30 ms nothing is cached between queries.
`--param place=store` measures one of both, and `--param turns=1` times each query once. A line's `ratio` is the seconds
with files of 128 MB to those with a file for each block, both attached.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from bench.data.object_store import BUCKET, ObjectStore, settings
from bench.options import Options
from bench.physical import TURNS, Physical, Way, timed
from bench.record import line, progress
from bench.suites import lineitem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.pipeline.learned import Learned

SCALES = {"quick": {"disk": 0.2}, "full": {"disk": 10.0, "store": 1.0}}
SIZES = {"a block": None, "32 MB": "32MB", "128 MB": "128MB"}
BLOCK_BYTES, DELAY = "4MB", 0.03


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr

    scales = SCALES[options.form]
    for place in [options.params["place"]] if "place" in options.params else list(scales):
        scale = options.sf or scales[place]
        data = lineitem.sums(replace(options, sf=scale), "file-sizes")
        folder, store = Path(tempfile.mkdtemp(prefix="hedgerow-bench-")), ObjectStore() if place == "store" else None
        spark = hr.session("4g", "local[2]", **(settings(store.url) if store else {}))
        spark.sparkContext.setLogLevel("ERROR")
        try:
            progress(f"file-sizes: learning, scale factor {scale:g}, {place}")
            sizes = hr.LearnOptions(block_bytes=BLOCK_BYTES, seed=options.seed)
            learned = hr.learn(spark, str(data.source), data.learned, options=sizes, table=data.name)
            tables = {}
            for name, size in SIZES.items():
                progress(f"file-sizes: writing files of {name}")
                tables[name] = str(folder / name.replace(" ", "-"))
                hr.apply(spark, str(data.source), learned, tables[name], hr.WriteOptions(file_bytes=size))
                if store:
                    store.upload(Path(tables[name]), name.replace(" ", "-"))
                    tables[name] = f"s3a://{BUCKET}/{name.replace(' ', '-')}"
            yield _measured(spark, data, learned, options, tables, place, store)
        finally:
            spark.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _measured(
    spark: SparkSession,
    data: Physical,
    learned: Learned,
    options: Options,
    tables: dict[str, str],
    place: str,
    store: ObjectStore | None,
) -> dict[str, Any]:
    def way_to(name: str, table: str, attached: bool) -> Way:
        return Way(name, lambda: spark.read.parquet(table), spark.sql, attached=attached)

    def before() -> None:
        if store:
            spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # type: ignore[union-attr]

    plain = [way_to(name, table, False) for name, table in tables.items()]
    attached = [way_to(f"{name}, attached", table, True) for name, table in tables.items()]
    requests = {}
    if store:
        store.delay = DELAY
        requests = {way.name: _requests(spark, data, way, store) for way in (*plain, *attached)}
    times = timed(spark, data, [*plain, *attached], before, int(options.params.get("turns", TURNS)))
    seconds = {name: sum(of) for name, of in times.medians.items()}
    kinds = list(dict.fromkeys(kind for kind, _ in data.timed))
    by_kind = {kind: [q for q, (own, _) in enumerate(data.timed) if own == kind] for kind in kinds}
    return line(
        suite="file-sizes",
        learner="qdtree",
        params={"form": options.form, **options.params, "place": place},
        **data.fields,
        rows=ds.dataset(data.source).count_rows(),
        blocks=learned.blocks,
        queries=len(data.learned),
        queries_unseen=len(data.timed),
        ratio=round(seconds["128 MB, attached"] / seconds["a block, attached"], 3),
        details={
            "seconds": {name: round(of, 2) for name, of in seconds.items()},
            "files": {way.name: len(way.table().inputFiles()) for way in plain},
            "requests": requests,
            "kind_ms": {
                kind: {name: round(1000 * sum(of[q] for q in own)) for name, of in times.medians.items()}
                for kind, own in by_kind.items()
            },
        },
        seed=options.seed,
    )


def _requests(spark: SparkSession, data: Physical, way: Way, store: ObjectStore) -> int:
    """Return how many requests the queries take, once the table was read for the first time."""
    import hedgerow as hr

    way.table().createOrReplaceTempView(data.name)
    if way.attached:
        hr.attach(spark)
    way.frame(f"SELECT count(*) FROM {data.name} WHERE l_quantity < 0").collect()
    store.counted()
    for _, sql in data.timed:
        way.frame(sql).collect()
    if way.attached:
        hr.detach(spark)
    return store.counted().total()
