"""What `attach` costs while a query is planned, and what it saves while it runs.

A table of as many tiny files as asked for, once as Parquet and once as Delta, and queries that need one file in a
hundred by a condition that Delta's own statistics know (a range) or do not (LIKE). Each query runs detached, attached
and, for Delta, with Delta's own skipping turned off; planning is timed apart, as medians.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.options import Options
from bench.record import line, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {"quick": (100,), "full": (100, 1_000, 10_000)}
TURNS = {"quick": 3, "full": 9}
ROWS_OF_A_FILE = 20
QUERIES = {"range": "k >= {low} AND k < {high}", "like": "word LIKE '%-{one}-%'"}


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow

    form, seed = options.form, options.seed

    listing = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
    spark = hedgerow.session("4g", "local[2]", **listing, **{"spark.databricks.delta.snapshotPartitions": "2"})
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for files in FILES[form]:
            for kind in ("parquet", "delta"):
                progress(f"attach: {files} files of {kind}")
                name = _table(spark, str(folder / f"{kind}{files}"), kind, files, seed)
                for what, condition in QUERIES.items():
                    sql = f"SELECT count(*), max(k) FROM {name} WHERE {_bounds(condition, files)}"
                    yield _measured(spark, sql, kind, what, files, form, seed)
            shutil.rmtree(folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _bounds(condition: str, files: int) -> str:
    """About a hundredth of the files, and at least one."""
    share = max(1, files // 100) * ROWS_OF_A_FILE
    return condition.format(low=share, high=2 * share, one=files // 2)


def _table(spark: SparkSession, path: str, kind: str, files: int, seed: int) -> str:
    """A managed table with one block a file; its name in SQL."""
    import hedgerow

    word = f"concat('w-', CAST(id / {ROWS_OF_A_FILE} AS INT), '-', id % 7)"
    rows = spark.range(files * ROWS_OF_A_FILE).selectExpr("id AS k", f"{word} AS word", "id * 31 % 1000 AS v")
    asked = ["SELECT * FROM t WHERE k < 100", f"SELECT * FROM t WHERE word LIKE '%-{files // 2}-%'"]
    workload = hedgerow.Workload.from_sql(asked)
    source: Any = rows
    if kind == "delta":
        rows.repartition(4).write.format("delta").save(path)
        source = path
    learned = hedgerow.learn(
        spark, source, workload, "range", ROWS_OF_A_FILE, files * ROWS_OF_A_FILE, seed, columns=["k"], table="t"
    )
    hedgerow.apply(spark, source, learned, None if kind == "delta" else path)
    return f"{kind}.`{path}`"


def _measured(spark: SparkSession, sql: str, kind: str, what: str, files: int, form: str, seed: int) -> dict[str, Any]:
    import hedgerow

    hedgerow.attach(spark)
    ways: dict[str, Callable[[], None]] = {
        "attached": lambda: spark.conf.set("hedgerow.enabled", "true"),
        "detached": lambda: spark.conf.set("hedgerow.enabled", "false"),
    }
    if kind == "delta":

        def unskipped() -> None:
            spark.conf.set("hedgerow.enabled", "false")
            spark.conf.set("spark.databricks.delta.stats.skipping", "false")

        ways["no_skipping"] = unskipped
    plans: dict[str, list[float]] = {way: [] for way in ways}
    runs: dict[str, list[float]] = {way: [] for way in ways}
    decisions: list[float] = []
    opened = None
    for turn in range(TURNS[form] + 1):  # the first warms up
        for way, switch in ways.items():
            switch()
            frame = spark.sql(sql)
            start = time.perf_counter()
            frame._jdf.queryExecution().executedPlan()
            planned = time.perf_counter()
            frame.collect()
            ended = time.perf_counter()
            spark.conf.unset("spark.databricks.delta.stats.skipping")
            if turn:
                plans[way].append(planned - start)
                runs[way].append(ended - start)
                if way == "attached":
                    [report] = hedgerow.last_query(spark)
                    opened = report.files_opened
                    decisions.append(report.seconds)
    hedgerow.detach(spark)
    spark.conf.unset("hedgerow.enabled")
    middle = statistics.median
    return line(
        suite="attach",
        params={
            "form": form,
            "kind": kind,
            "query": what,
            "files": files,
            "files_opened": opened,
            "decision_ms": round(1000 * middle(decisions), 1),
            **{f"plan_ms_{way}": round(1000 * middle(found), 1) for way, found in plans.items()},
            **{f"query_ms_{way}": round(1000 * middle(found), 1) for way, found in runs.items()},
        },
        rows=files * ROWS_OF_A_FILE,
        blocks=files,
        p50_ms=round(1000 * middle(runs["attached"]), 1),
        ratio=round(middle(runs["attached"]) / middle(runs["detached"]), 3),
        seed=seed,
    )
