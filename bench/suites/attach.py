"""Time planning and running of queries with `attach` and without.

A table of as many tiny files as asked for, once as Parquet and once as Delta, and queries that need one file in a
hundred by a condition that Delta's own statistics know (a range) or do not (LIKE). Each query runs detached, attached,
routed and, for Delta, with Delta's own skipping turned off. Medians: planning from the analysed query (`plan_ms`), and
from its text (`text_to_plan_ms`), where `route` has its part.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.options import Options
from bench.record import line, progress
from hedgerow.core.predicates.nodes import Like, col
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.pruning.block_stats import F_BIT, T_BIT, NotedCondition, Stats, collect
from hedgerow.demo.race import rotated
from hedgerow.tables.state import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = {"quick": (100,), "full": (100, 1_000, 10_000)}
KINDS: tuple[Kind, ...] = ("parquet", "delta")
TURNS = {"quick": (3, 3), "full": (15, 3)}  # plans, and how many of them are run as well
ROWS_OF_A_FILE = 20
QUERIES = {"range": "k >= {low} AND k < {high}", "like": "word LIKE '%-{one}-%'"}


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow

    form, seed = options.form, options.seed

    listing = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
    spark = hedgerow.session("4g", "local[2]", **listing)
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        for files in FILES[form]:
            for kind in KINDS:
                progress(f"attach: {files} files of {kind}")
                name = _table(spark, str(folder / f"{kind}{files}"), kind, files)
                for kind_of_query, condition in QUERIES.items():
                    sql = f"SELECT count(*), max(k) FROM {name} WHERE {_bounds(condition, files)}"
                    yield _measured(spark, sql, kind, kind_of_query, files, form, seed)
            shutil.rmtree(folder)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _bounds(condition: str, files: int) -> str:
    """Return the condition with literals that select about a hundredth of the files, and at least one."""
    share = max(1, files // 100) * ROWS_OF_A_FILE
    return condition.format(low=share, high=2 * share, one=files // 2)


def _table(spark: SparkSession, path: str, kind: Kind, files: int) -> str:
    keys = np.arange(files * ROWS_OF_A_FILE, dtype=np.int64)
    rows = pa.table({"k": keys, "word": [f"w-{k // ROWS_OF_A_FILE}-{k % 7}" for k in keys], "v": keys * 31 % 1000})
    bits = np.full(files, F_BIT, np.uint8)
    bits[files // 2] = T_BIT
    condition = Like(col("word"), f"%-{files // 2}-%")
    return managed(spark, path, kind, rows, ROWS_OF_A_FILE, ["k", "word"], [NotedCondition(condition, bits)])


def managed(
    spark: SparkSession,
    path: str,
    kind: Kind,
    rows: pa.Table,
    rows_of_a_file: int,
    indexed: Sequence[str],
    noted: Sequence[NotedCondition] = (),
) -> str:
    """Write a managed table of many files without Spark, which would take an hour, and return its name in SQL."""
    from hedgerow.core.index.block_index import BlockIndex
    from hedgerow.core.layouts.tree import TreeLayout
    from hedgerow.spark.compute.checksum import Checksum
    from hedgerow.spark.optimizer.jvm_facts import settings
    from hedgerow.spark.storage.folder import Folder
    from hedgerow.spark.write.writing import Writing
    from hedgerow.tables.entry import Entry
    from hedgerow.tables.known_files import SIDE, KnownFiles
    from hedgerow.tables.part import write_layout, write_part
    from hedgerow.tables.state import TableState, operation, write_first_state

    files = rows.num_rows // rows_of_a_file
    names = [f"part-{i:05d}-bench.parquet" for i in range(files)]
    Path(path).mkdir(parents=True)
    for i, name in enumerate(names):
        pq.write_table(rows.slice(i * rows_of_a_file, rows_of_a_file), f"{path}/{name}")
    if kind == "delta":
        spark.sql(f"CONVERT TO DELTA parquet.`{path}`").collect()
    entry_of = np.arange(rows.num_rows) // rows_of_a_file
    stats = collect({col(name): rows[name] for name in indexed}, entry=entry_of, entries=files)
    stats = Stats(stats.rows, stats.terms, {predicate_text(one.predicate): one for one in noted})
    sizes = np.array([Path(path, name).stat().st_size for name in names], np.int64)
    known = KnownFiles(tuple(names), sizes, stats.rows, np.arange(files, dtype=np.int64), {})
    fields = json.loads(spark.read.format(kind).load(path).schema.json())["fields"]
    side, none = Folder(spark, f"{path}/{SIDE}"), Checksum(0, 0, 0)
    conditions = tuple(one.predicate for one in noted)
    entry = Entry("", "", "", tuple(fields), settings(spark), Writing(), conditions, none)
    entry = write_part(side, write_layout(side, entry, TreeLayout((), ())), BlockIndex(stats), known)
    write_first_state(side, TableState(kind, "t", (entry,), (operation("apply", 0, entry),)))
    return f"{kind}.`{path}`"


def _ways(spark: SparkSession, kind: str) -> dict[str, Callable[[], None]]:
    """Return the ways to run a query by name, each with a function that sets the session up for it."""
    from hedgerow.tables.attach import rule_of

    def attached(every: bool) -> None:
        spark.conf.set("hedgerow.enabled", "true")
        rule_of(spark).attached(every)

    def detached() -> None:
        spark.conf.set("hedgerow.enabled", "false")

    def unskipped() -> None:
        detached()
        spark.conf.set("spark.databricks.delta.stats.skipping", "false")

    ways: dict[str, Callable[[], None]] = {
        "attached": lambda: attached(True),
        "routed": lambda: attached(False),
        "detached": detached,
    }
    return {**ways, "no_skipping": unskipped} if kind == "delta" else ways


def _measured(spark: SparkSession, sql: str, kind: str, query: str, files: int, form: str, seed: int) -> dict[str, Any]:
    """Time a query in every way, and return the line."""
    import hedgerow

    hedgerow.attach(spark)
    ways = _ways(spark, kind)
    plans: dict[str, list[float]] = {way: [] for way in ways}
    from_text: dict[str, list[float]] = {way: [] for way in ways}
    runs: dict[str, list[float]] = {way: [] for way in ways}
    decisions: list[float] = []
    opened = None
    turns, runs_of_them = TURNS[form]
    for turn in range(turns + 1):
        for way in rotated(list(ways), turn):
            ways[way]()
            begin = time.perf_counter()
            frame = hedgerow.route(spark, sql) if way == "routed" else spark.sql(sql)
            start = time.perf_counter()
            frame._jdf.queryExecution().executedPlan()
            plans[way].append(time.perf_counter() - start)
            from_text[way].append(time.perf_counter() - begin)
            if way == "attached":
                [report] = hedgerow.last_query(spark)
                opened = report.files_opened
                decisions.append(report.seconds)
            if turn <= runs_of_them:
                frame.collect()
                runs[way].append(time.perf_counter() - start)
            spark.conf.unset("spark.databricks.delta.stats.skipping")
    hedgerow.detach(spark)
    spark.conf.unset("hedgerow.enabled")
    seconds = {"plan": plans, "text_to_plan": from_text, "query": runs}
    return line(
        suite="attach",
        params={"form": form, "kind": kind, "query": query, "files": files},
        details={
            "files_opened": opened,
            "decision_ms": round(1000 * _middle(decisions), 1),
            **{
                f"{name}_ms_{way}": round(1000 * _middle(times), 1)
                for name, by_way in seconds.items()
                for way, times in by_way.items()
            },
        },
        rows=files * ROWS_OF_A_FILE,
        blocks=files,
        p50_ms=round(1000 * _middle(runs["attached"]), 1),
        ratio=round(_middle(runs["attached"]) / _middle(runs["detached"]), 3),
        seed=seed,
    )


def _middle(times: list[float]) -> float:
    return statistics.median(times[1:])  # the first warms up
