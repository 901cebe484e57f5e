"""Time joins whose keys are in every file, with joins at run time and without: what these cost when they bring nothing.

The table has some hundred files by ranges of `k`; the other side is a Parquet file with some keys in each of them. Its
keys come from the broadcast that the join makes, or from a second run of the side. Runs with and without alternate. A
difference is the median over pairs of runs, with an interval that holds it with 95 %, in seconds of the clock and of
the processor: on a busy machine only the latter say something. `--param rows_of_a_file=60000` makes larger files.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.options import Options
from bench.record import line, progress
from bench.suites.attach import managed
from hedgerow.demo.race import rotated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS_OF_A_FILE = 300, 20_000  # 32 MB and more, so that keys choose
EVERY = 1_000  # a key of the other side in so many rows
PAIRS = {"quick": (10, 4), "full": (100, 30)}  # of plans, and of runs
SQL = "SELECT count(*), max(t.v) FROM {table} t JOIN side s ON t.k = s.k WHERE s.kind = 'even'"
WAYS = {"a broadcast": "10MB", "a second run": "-1"}


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow

    spark = hedgerow.session("3g", "local[2]", spark_sql_shuffle_partitions="2")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        rows_of_a_file = int(options.params.get("rows_of_a_file", ROWS_OF_A_FILE))
        table = _table(spark, folder, rows_of_a_file)
        hedgerow.attach(spark)
        for way, threshold in WAYS.items():
            progress(f"late-keys: keys of {way}")
            spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
            yield _measured(spark, SQL.format(table=table), way, FILES * rows_of_a_file, options)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _table(spark: SparkSession, folder: Path, rows_of_a_file: int) -> str:
    keys, rng = np.arange(FILES * rows_of_a_file, dtype=np.int64), np.random.default_rng(0)
    rows = pa.table({"k": keys, "v": rng.integers(0, 1 << 40, len(keys))})
    some = keys[EVERY // 2 :: EVERY]
    kinds = np.where(some // EVERY % 2 == 0, "even", "odd")
    pq.write_table(pa.table({"k": some, "kind": kinds}), folder / "side.parquet")
    spark.read.parquet(str(folder / "side.parquet")).createOrReplaceTempView("side")
    return managed(spark, str(folder / "t"), "parquet", rows, rows_of_a_file, ["k"])


class _Clock:
    """Seconds of the clock, and of the processor: of this thread in the JVM, or of all its threads, and of Python."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self.threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self.process = jvm.java.lang.ProcessHandle.current()

    def thread(self) -> tuple[float, float]:
        return time.perf_counter(), self.threads.getCurrentThreadCpuTime() / 1e9 + time.process_time()

    def all(self) -> tuple[float, float]:
        used = self.process.info().totalCpuDuration().get().toMillis() / 1e3
        return time.perf_counter(), used + time.process_time()


def _measured(spark: SparkSession, sql: str, way: str, rows: int, options: Options) -> dict[str, Any]:
    import hedgerow

    clock, plans, runs = _Clock(spark), _Pairs(), _Pairs()
    most, most_run = PAIRS[options.form]
    for pair in range(most + 1):  # the first warms up
        for setting in rotated(["true", "false"], pair):
            spark.conf.set("hedgerow.runtime", setting)
            frame = spark.sql(sql)
            begun = clock.thread()
            frame._jdf.queryExecution().executedPlan()
            plans.add(setting, begun, clock.thread())
            if pair <= most_run:
                begun = clock.all()
                frame.collect()
                runs.add(setting, begun, clock.all())
                [scan] = [scan for scan in hedgerow.last_query(spark) if scan.files == FILES]
                assert scan.files_opened == FILES and scan.files_read == (FILES if setting == "true" else None)
    return line(
        suite="late-keys",
        params={"form": options.form, "keys": way, **options.params},
        rows=rows,
        blocks=FILES,
        details={**plans.figures("plan"), **runs.figures("run")},
        ratio=round(1 + runs.share(), 4),
        seed=options.seed,
    )


class _Pairs:
    """Seconds of runs with the setting and without, in pairs: by the clock, and of the processor."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[tuple[float, float]]] = {"true": [], "false": []}

    def add(self, setting: str, begun: tuple[float, float], ended: tuple[float, float]) -> None:
        self.seconds[setting].append((ended[0] - begun[0], ended[1] - begun[1]))

    def _of(self, setting: str, which: int) -> list[float]:
        return [both[which] for both in self.seconds[setting][1:]]

    def share(self) -> float:
        """Return the difference as a share of the processor's seconds without the setting."""
        return _median(self._differences(1))[0] / statistics.median(self._of("false", 1))

    def _differences(self, which: int) -> list[float]:
        return [on - off for on, off in zip(self._of("true", which), self._of("false", which), strict=True)]

    def figures(self, name: str) -> dict[str, Any]:
        """Return milliseconds without the setting, what it adds, and the ends of the interval."""
        found: dict[str, Any] = {}
        for which, clock in enumerate(("", "_cpu")):
            off = self._of("false", which)
            found[f"{name}{clock}_ms"] = round(1000 * statistics.median(off), 2)
            found[f"{name}{clock}_ms_more"] = [round(1000 * value, 2) for value in _median(self._differences(which))]
            fastest = min(self._of("true", which)) - min(off)
            found[f"{name}{clock}_ms_more_at_best"] = round(1000 * fastest, 2)
        return found


def _median(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, and two of the values that have it between them with 95 %."""
    ordered, n = sorted(values), len(values)
    least = max(0, int(n / 2 - 0.98 * sqrt(n)))
    return statistics.median(ordered), ordered[least], ordered[n - 1 - least]
