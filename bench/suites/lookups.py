"""Filters of look-ups of many files: their bytes, their false positives, and how long a look-up takes.

Each file has some hundred values of its own, and no value is in two files. The filters get so many bits for each value
of a file, and are looked up as a query does it: the first time, when the footers of the filter's files are not yet
known; then for other values; and again for the same values. Every present value has to name its file.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from bench.options import Options
from bench.record import line, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {"quick": (1_000,), "full": (1_000, 100_000)}
BITS = {"quick": (10,), "full": (8, 10, 16)}
VALUES_OF_A_FILE = 200
LOOKED_UP = 200  # values that are in a file, and as many that are in none


def run(options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for files in FILES[options.form]:
            for bits in BITS[options.form]:
                progress(f"lookups: {files:,} files, {bits} bits a value")
                yield _measured(spark, files, bits, options, folder / f"{files}-{bits}")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _measured(spark: SparkSession, files: int, bits: int, options: Options, folder: Path) -> dict[str, Any]:
    from hedgerow.core.pruning.value_filter import best_shape
    from hedgerow.spark.storage.folder import Folder
    from hedgerow.spark.write.build_filter import ENTRY, VALUE, build_filter
    from hedgerow.tables.lookups import Lookup, StoredFilter

    names = [f"part-{i}.parquet" for i in range(files)]
    crcs = np.array([crc32(name.encode()) for name in names], np.int64)
    counts = np.full(len(np.unique(crcs)), VALUES_OF_A_FILE)
    shape = best_shape(counts, bits / 8 * files * VALUES_OF_A_FILE)
    assert shape is not None
    number = f"crc32(CAST(concat('part-', id DIV {VALUES_OF_A_FILE}, '.parquet') AS BINARY)) AS {ENTRY}"
    values = spark.range(files * VALUES_OF_A_FILE).selectExpr(number, f"id AS {VALUE}")
    begun = time.perf_counter()
    stored = build_filter(values, shape, np.unique(crcs), Folder(spark, str(folder)), "lookup", bits * files * 25.0)
    built = time.perf_counter() - begun
    size = sum(file.size for file in stored.files)
    lookup = Lookup("lookup", ("v",), "bigint", shape, stored.files, stored.per_file, 0, files, 0.0)
    rng = np.random.default_rng(options.seed)
    present = rng.integers(0, files * VALUES_OF_A_FILE, LOOKED_UP).tolist()
    absent = [value + files * VALUES_OF_A_FILE for value in present]
    took: list[float] = []
    opened = {"present": 0, "absent": 0}
    value_filter = StoredFilter(lookup, stored, names)
    for kind, looked_up in (("absent", absent), ("present", present), ("again", present)):
        for value in looked_up:
            begun = time.perf_counter()
            may_hold = value_filter.may_hold("int", [value])
            took.append(time.perf_counter() - begun)
            assert kind == "absent" or may_hold[value // VALUES_OF_A_FILE]
            if kind in opened:
                opened[kind] += int(may_hold.sum())
    first, others, again = took[0], took[1 : 2 * LOOKED_UP], took[2 * LOOKED_UP :]
    begun = time.perf_counter()
    StoredFilter(lookup, stored, names).may_hold("int", present[:50])
    fifty = time.perf_counter() - begun
    return line(
        suite="lookups",
        params={"form": options.form, "bits": bits, "index": f"{files:,} files"},
        blocks=files,
        queries=2 * LOOKED_UP,
        rows=files * VALUES_OF_A_FILE,
        blocks_read=opened["absent"] / LOOKED_UP / files,
        p50_ms=round(1e3 * median(others), 3),
        p99_ms=round(1e3 * float(np.percentile(others, 99)), 3),
        apply_seconds=round(built, 1),
        details={
            "bits_stored": round(8 * size / (files * VALUES_OF_A_FILE), 2),
            "false_positives": opened["absent"] / LOOKED_UP / files,
            "false_positives_expected": shape.false_positives(counts),
            "files_opened": {kind: n / LOOKED_UP for kind, n in opened.items()},
            "first_ms": round(1e3 * first, 1),
            "fifty_values_ms": round(1e3 * fifty, 1),
            "again_ms": round(1e3 * median(again), 3),
        },
        seed=options.seed,
    )
