"""`hedgerow demo`: make a table, learn, rewrite it, prove the rows equal, and time queries, also on Delta's ZORDER."""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hedgerow
from hedgerow.core.errors import HedgerowError
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.picture.show import Shown
from hedgerow.spark.start.session import temporary_settings
from hedgerow.spark.storage import delta_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KB_PER_SCALE = 4096  # the size of a block at scale 1: this makes about 40 blocks at any scale
LEARNED, UNSEEN, TIMED = 100, 100, 12  # queries to learn from, unseen queries, queries of each kind to time
ZORDER = "l_shipdate, l_partkey"  # the column that most queries filter on, and the most selective one
AS_IT_CAME, BY_ZORDER, BY_HEDGEROW = "as it came", "Delta's ZORDER", "by Hedgerow"


@dataclass(frozen=True)
class DemoResult:
    """The demo's measurements. `seconds`: for each table, of each query learned from, and of each unseen query."""

    rows: int
    files: int
    learning: float
    rewriting: float
    zorder: float | None
    rows_read: tuple[float, float]
    seconds: Mapping[str, tuple[list[float], list[float]]]

    def medians(self, table: str) -> tuple[float, float]:
        learned, unseen = self.seconds[table]
        return statistics.median(learned), statistics.median(unseen)

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "medians": {name: self.medians(name) for name in self.seconds},
            "times_faster": {name: self.faster(name) for name in self.seconds if name != BY_HEDGEROW},
        }

    def faster(self, other_table: str) -> tuple[float, float]:
        """Return how many times faster the median query is than over another table."""
        pairs = zip(self.seconds[other_table], self.seconds[BY_HEDGEROW], strict=True)
        learned, unseen = (statistics.median(a / b for a, b in zip(*pair, strict=True)) for pair in pairs)
        return learned, unseen


def generate(folder: Path, scale: float, tables: Sequence[str], parts: int) -> None:
    """Write tables of TPC-H as Parquet files, each into its folder."""
    installed = Path(sys.executable).with_name("tpchgen-cli")
    program = installed if installed.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise HedgerowError("the tables of TPC-H need tpchgen-cli, which is missing: pip install 'hedgerow[demo]'")
    options = ["-s", f"{scale:g}", "-T", ",".join(tables), "--parts", str(parts), "-o", str(folder), "--quiet"]
    subprocess.run([program, "parquet", *options], check=True)


def random_queries(n: int, seed: int, scale: float) -> list[str]:
    """Return queries of four kinds, each with new random literals."""
    r = random.Random(seed)
    queries = []
    for i in range(n):
        year, month, quantity = r.randrange(1992, 1998), r.randrange(1, 13), r.randrange(5, 45)
        mode, word = r.choice(["AIR", "FOB", "MAIL", "RAIL", "SHIP"]), r.choice(["fox", "pinto", "quick"])
        part = r.randrange(int(200_000 * scale))
        conditions = [
            f"l_shipdate >= DATE '{year}-{month:02d}-01' AND l_shipdate < add_months(DATE '{year}-{month:02d}-01', 1)"
            f" AND l_quantity < {quantity}",
            f"l_shipmode = '{mode}' AND l_commitdate < l_receiptdate"
            f" AND l_receiptdate >= DATE '{year}-01-01' AND l_receiptdate < DATE '{year + 1}-01-01'",
            f"l_partkey BETWEEN {part} AND {part + 50}",
            f"l_returnflag = 'R' AND year(l_shipdate) = {year} AND l_comment LIKE '%{word}%'",
        ]
        queries.append(f"SELECT count(*), sum(l_extendedprice) FROM lineitem WHERE {conditions[i % 4]}")
    return queries


def demo(
    spark: SparkSession, say: Callable[[str, str], None], scale: float, timed: int = TIMED
) -> tuple[DemoResult, Shown]:
    """Run the demo in a temporary folder; return its measurements, and the picture of the table that was written.

    Args:
        say: receives each step's name and its result.
        timed: the number of queries to time, of those learned from and of the unseen ones.
    """
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-demo-"))
    try:
        return _demo_in(folder, spark, say, scale, timed)
    finally:
        shutil.rmtree(folder)


def _demo_in(
    folder: Path, spark: SparkSession, say: Callable[[str, str], None], scale: float, timed: int
) -> tuple[DemoResult, Shown]:
    has_delta = delta_log.has_delta(spark)
    generate(folder, scale, ["lineitem"], parts=8)
    source = str(folder / "lineitem")
    if has_delta:
        # Statistics would be useless: the rows are in no order that queries filter on.
        spark.sql(f"CONVERT TO DELTA parquet.{quote_name(source)} NO STATISTICS")
    learned, unseen = random_queries(LEARNED, 1, scale), random_queries(UNSEEN, 2, scale)
    workload, unseen_workload = hedgerow.Workload.from_sql(learned), hedgerow.Workload.from_sql(unseen)
    rows = _read(spark, source, has_delta).count()
    kind = "a Delta table" if has_delta else "Parquet files"
    say("made", f"{rows:,} rows of TPC-H's lineitem as {kind}; {len(workload)} queries to learn from")

    begun = time.perf_counter()
    options = hedgerow.LearnOptions(block_bytes=f"{_block_kb(scale)}KB")
    layout = hedgerow.learn(spark, source, workload, options=options, table="lineitem")
    learning = time.perf_counter() - begun
    say("learned", f"{layout} in {learning:.0f} s")
    target = str(folder / "by_hedgerow")
    if has_delta:
        shutil.copytree(source, target)
    begun = time.perf_counter()
    table = hedgerow.apply(spark, target if has_delta else source, layout, to=None if has_delta else target)
    rewriting = time.perf_counter() - begun
    say("rewrote", f"it into {len(table.known)} files in {rewriting:.0f} s")
    proof = table.verify()
    say("verified", f"{proof['rows']:,} rows in {proof['files']:,} files, as they were written")

    places = {AS_IT_CAME: source, BY_HEDGEROW: target}
    zorder = None
    if has_delta:
        places[BY_ZORDER], begun = str(folder / "by_zorder"), time.perf_counter()
        shutil.copytree(source, places[BY_ZORDER])
        _optimize_zorder(spark, places[BY_ZORDER], _block_kb(scale))
        zorder = time.perf_counter() - begun
        say("beside", f"Delta's OPTIMIZE ZORDER BY ({ZORDER}) of a copy, in {zorder:.0f} s")
    seconds = _seconds(spark, places, has_delta, [learned[:timed], unseen[:timed]])
    rows_read = table.score(workload).rows_read, table.score(unseen_workload).rows_read
    result = DemoResult(rows, len(table.known), learning, rewriting, zorder, rows_read, seconds)
    return result, hedgerow.show(spark, target, unseen_workload)


def _block_kb(scale: float) -> int:
    return max(1, round(KB_PER_SCALE * scale))


def _optimize_zorder(spark: SparkSession, path: str, block_kb: int) -> None:
    """Rewrite a Delta table by ZORDER into files as large as Hedgerow's, with rows sorted inside of them."""
    delta = "spark.databricks.delta.optimize."
    size = str(block_kb << 10)
    sizes = {f"{delta}maxFileSize": size, f"{delta}minFileSize": size}
    with temporary_settings(spark, {**sizes, "spark.databricks.io.skipping.mdc.sortWithinPartitions": "true"}):
        spark.sql(f"OPTIMIZE delta.{quote_name(path)} ZORDER BY ({ZORDER})")


def _read(spark: SparkSession, path: str, is_delta: bool) -> DataFrame:
    return spark.read.format("delta" if is_delta else "parquet").load(path)


def _seconds(
    spark: SparkSession, places: Mapping[str, str], are_delta: bool, both: Sequence[Sequence[str]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Time each query over each table, the tables in turn; raise AssertionError unless all results are equal."""
    sessions = {}
    for name, path in places.items():
        sessions[name] = spark.newSession()
        if name == BY_HEDGEROW:
            hedgerow.attach(sessions[name])
        _read(sessions[name], path, are_delta).createOrReplaceTempView("lineitem")
        sessions[name].sql(both[0][0]).collect()  # the first query of a session takes longer
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in places}
    for i, queries in enumerate(both):
        for query in queries:
            results = []
            for name, session in sessions.items():
                begun = time.perf_counter()
                results.append(session.sql(query).collect())
                seconds[name][i].append(time.perf_counter() - begun)
            if any(result != results[0] for result in results):
                raise AssertionError(f"{query} gives {results[0]}, but another answer after the rewriting: {results}")
    return seconds
