"""An invented table of 100,000 and of a million files: what its driver needs to open it and to answer for it.

A small table is written, and then gets an invented index (`bench/data/many_files`) and empty files of some length. So
nothing here reads rows. These are measured:

    open       read the table's list of files and its index
    decide     which files a query opens, 98 conditions; `p50_ms`, `p99_ms` of processor time
    first      the seconds of these decisions when each is made for the first time
    describe   list the files, and the table's facts
    explain    why one query opens or skips each file
    append     some rows in a few files; `bytes` written into `_hedgerow`

`open_mb` is how much the driver's Python grew while it opened the table and made all decisions.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bench.data import many_files
from bench.options import Options
from bench.record import line, progress
from bench.watched import resident_mb, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hedgerow.tables.known_files import KnownFiles

FILES = {"quick": (10_000,), "full": (100_000, 1_000_000)}
CONDITIONS = 98
MEMORY = "3g"
FILE_BYTES = 1 << 20  # sparse, so on the disk they have none
T = TypeVar("T")


def run(options: Options) -> Iterator[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for files in FILES[options.form]:
            place = str(folder / str(files))
            for step in ("make", "measure"):
                progress(f"files: {step}, {files:,} files")
                measured = watched("bench.suites.files", step, place, str(files), str(options.seed))
            shutil.rmtree(place)
            yield line(
                suite="files",
                params={"form": options.form, "files": files, "memory": MEMORY},
                blocks=files,
                queries=CONDITIONS,
                blocks_read=measured["blocks_read"],
                p50_ms=measured["p50_ms"],
                p99_ms=measured["p99_ms"],
                peak_mb=measured["python_mb"],
                details={
                    key: measured[key]
                    for key in (
                        *(f"{verb}_seconds" for verb in ("open", "first", "describe", "explain", "append")),
                        *("open_mb", "python_mb", "jvm_mb", "index_bytes", "list_bytes", "append_bytes"),
                    )
                },
                seed=options.seed,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- one step, in a process of its own ------------------------------------------------------------


def _rows(spark: SparkSession, count: int) -> DataFrame:
    columns = [
        f"date_add(DATE'1970-01-01', CAST({many_files.FIRST_DAY} + id % {many_files.DAYS} AS INT)) AS {name}"
        if kind == "date"
        else f"id * 7919 AS {name}"
        if kind == "bigint"
        else f"concat('{name}', lpad(id % 5, 2, '0')) AS {name}"
        for name, kind in many_files.SCHEMA.items()
    ]
    return spark.range(count).selectExpr(*columns)


def _make(spark: SparkSession, place: str, files: int, seed: int) -> dict[str, Any]:
    """Write a small table, and give it the index and the files of a large one."""
    import hedgerow as hr
    from hedgerow.tables.part import write_part
    from hedgerow.tables.state import operation, update_state

    _rows(spark, 10_000).write.parquet(f"{place}-source")
    asked = [f"SELECT count(*) FROM t WHERE day >= DATE'{day}'" for day in ("2003-01-01", "2007-01-01")]
    learned = hr.learn(spark, f"{place}-source", hr.Workload.from_sql(asked), learner="range", table="t")
    table = hr.apply(spark, f"{place}-source", learned, place)
    for name in table.known.names:
        (Path(place) / name).unlink()
    known, index = _files(files, seed), many_files.make_index(files, seed)
    for name in known.names:
        with (Path(place) / name).open("wb") as file:
            os.truncate(file.fileno(), FILE_BYTES)
    entry = replace(table.state.parts[0], id="", index="", write="")
    entry = write_part(table.format.side, entry, index, known)
    done = operation("apply", 1, entry)
    update_state(table.format.side, "parquet", lambda state, _: replace(state, parts=(entry,), operations=(done,)))
    shutil.rmtree(f"{place}-source")
    return {}


def _files(files: int, seed: int) -> KnownFiles:
    from hedgerow.tables.known_files import KnownFiles

    sizes, rows = np.full(files, FILE_BYTES), np.full(files, many_files.ROWS)
    columns = many_files.column_bytes(files, seed)
    return KnownFiles(tuple(many_files.file_names(files)), sizes, rows, np.arange(files), columns)


def _measure(spark: SparkSession, place: str, files: int, seed: int) -> dict[str, Any]:
    import hedgerow as hr
    from hedgerow.core.predicates.nodes import Compare, col, lit
    from hedgerow.core.workload.queries import Query, Scan

    measured: dict[str, Any] = {}

    def timed(verb: str, run: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = run()
        measured[f"{verb}_seconds"] = round(time.perf_counter() - start, 3)
        return result

    entry = hr.table(spark, place).parts[0].entry  # imports and Spark's own set-up are not to be timed
    for key, name in zip(("index_bytes", "list_bytes"), entry.names[:2], strict=True):
        measured[key] = (Path(place) / "_hedgerow" / name).stat().st_size
    gc.collect()
    before = resident_mb()
    table = hr.table(spark, place)
    indexed = timed("open", table.indexed)
    index = indexed.parts[0].index
    index.to_open(Compare(col("nowhere"), "<", lit(0)))
    conditions = [many_files.make_condition(i, seed) for i in range(CONDITIONS)]
    timed("first", lambda: [index.to_open(p) for p in conditions])
    times, opened = [], []
    for p in conditions:
        start = time.thread_time()  # a decision waits for nothing, and other work on the machine shall not count
        is_open = index.to_open(p)
        times.append((time.thread_time() - start) * 1e3)
        opened.append(is_open.mean())
    p50, p99 = np.percentile(times, (50, 99))
    gc.collect()
    measured["open_mb"] = resident_mb() - before
    measured |= {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3), "blocks_read": round(float(np.mean(opened)), 5)}
    timed("describe", table.describe)
    query = Query("q", (Scan(table.name, conditions[0]),))
    timed("explain", lambda: table.explained(query))
    side = Path(place) / "_hedgerow"
    stored = {path.name for path in side.iterdir()}
    opened_table = hr.table(spark, place)
    timed("append", lambda: opened_table.append(_rows(spark, 1000)))
    measured["append_bytes"] = sum(path.stat().st_size for path in side.iterdir() if path.name not in stored)
    return measured


def _step(step: str, place: str, files: int, seed: int) -> dict[str, Any]:
    from hedgerow.spark.start.session import local_session

    spark = local_session(MEMORY, "local[2]", spark_sql_shuffle_partitions="2")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return {"make": _make, "measure": _measure}[step](spark, place, files, seed)
    finally:
        spark.stop()


if __name__ == "__main__":
    print(json.dumps(_step(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
