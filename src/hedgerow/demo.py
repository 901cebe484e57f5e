"""`make demo`: makes 12 million rows of TPC-H's lineitem, learns a layout, rewrites the table and times queries."""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import hedgerow
from hedgerow.spark.start.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE, BLOCK_BYTES = 2, "8MB"
LEARNED, UNSEEN, TIMED = 100, 100, 12


def random_queries(n: int, seed: int) -> list[str]:
    """Queries of four kinds, each with new random literals."""
    r = random.Random(seed)
    queries = []
    for i in range(n):
        year, month, quantity = r.randrange(1992, 1998), r.randrange(1, 13), r.randrange(5, 45)
        mode, word = r.choice(["AIR", "FOB", "MAIL", "RAIL", "SHIP"]), r.choice(["fox", "pinto", "quick"])
        part = r.randrange(int(200_000 * SCALE))
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


def main() -> None:
    console = Console()
    program = Path(sys.executable).with_name("tpchgen-cli")
    if not program.exists():
        raise SystemExit("the demo makes its data with tpchgen-cli: pip install 'hedgerow[bench]'")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-demo-"))
    spark = local_session("4g")
    try:
        subprocess.run(
            [program, "parquet", "-s", f"{SCALE:g}", "-T", "lineitem", "--parts", "8", "-o", folder, "--quiet"],
            check=True,
        )
        _show(console, spark, str(folder / "lineitem"), str(folder / "lineitem_by_hedgerow"))
    finally:
        spark.stop()
        shutil.rmtree(folder)


def _show(console: Console, spark: SparkSession, source: str, target: str) -> None:
    learned, unseen = random_queries(LEARNED, seed=1), random_queries(UNSEEN, seed=2)
    workload, other = hedgerow.Workload.from_sql(learned), hedgerow.Workload.from_sql(unseen)
    rows = spark.read.parquet(source).count()
    console.print(f"{rows:,} rows of TPC-H lineitem (scale {SCALE:g}); {len(workload)} queries to learn from\n")

    start = time.perf_counter()
    layout = hedgerow.learn(spark, source, workload, block_bytes=BLOCK_BYTES)
    console.print(f"learned   {layout} in {time.perf_counter() - start:.1f} s")
    console.print(f"          {layout.estimate}")
    start = time.perf_counter()
    table = hedgerow.apply(spark, source, layout, to=target)
    console.print(f"rewrote   it into {len(table.known)} files in {time.perf_counter() - start:.1f} s")
    proof = table.verify()
    console.print(f"verified  {proof['rows']:,} rows, checksum {proof['checksum']}\n")

    scores = [table.score(workload), table.score(other)]
    times = [_times(spark, source, target, queries) for queries in (learned[:TIMED], unseen[:TIMED])]
    plain, attached = ([statistics.median(t[way] for t in some) for some in times] for way in (0, 1))
    shown = Table("", "learned queries", "unseen queries", box=None, padding=(0, 2))
    shown.add_row("rows read", *(f"{100 * s.rows_read:.1f} %" for s in scores))
    shown.add_row("seconds, table as it came", *(f"{seconds:.2f}" for seconds in plain))
    shown.add_row("seconds, rewritten table", *(f"{seconds:.2f}" for seconds in attached))
    faster = (statistics.median(a / b for a, b in some) for some in times)
    shown.add_row("[bold]times faster", *(f"[bold]{f:.1f}" for f in faster))
    console.print(shown)
    console.print(f"\nmedians of {TIMED} queries each; all {2 * TIMED} gave the same result both ways")


def _times(spark: SparkSession, source: str, target: str, queries: list[str]) -> list[tuple[float, float]]:
    """The seconds of each query over the source and over the rewritten table; both results have to be equal."""
    attached = spark.newSession()
    hedgerow.attach(attached)
    ways = ((spark, source), (attached, target))
    for session, path in ways:
        session.read.parquet(path).createOrReplaceTempView("lineitem")
        session.sql(queries[0]).collect()  # the first query of a session takes longer
    times = []
    for query in queries:
        results, seconds = [], []
        for session, _ in ways:
            start = time.perf_counter()
            results.append(session.sql(query).collect())
            seconds.append(time.perf_counter() - start)
        if results[0] != results[1]:
            raise AssertionError(f"{query} gives {results[0]}, but {results[1]} after the rewriting")
        times.append((seconds[0], seconds[1]))
    return times


if __name__ == "__main__":
    main()
