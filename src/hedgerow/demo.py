"""`hedgerow demo`: makes a table, learns, rewrites it, proves the rows equal; times queries, also on Delta's ZORDER."""

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

KB_PER_SCALE = 4096  # of a block: about 40 of them, whatever the scale
LEARNED, UNSEEN, TIMED = 100, 100, 12
ZORDER = "l_shipdate, l_partkey"  # what most queries filter by, and what filters most
AS_IT_CAME, BY_ZORDER, BY_HEDGEROW = "as it came", "Delta's ZORDER", "by Hedgerow"


@dataclass(frozen=True)
class Told:
    """What the demo measured. `seconds`: of each query, over each table, for learned and for unseen queries."""

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

    def faster(self, than: str) -> tuple[float, float]:
        """How many times faster than over another table the median query is."""
        pairs = zip(self.seconds[than], self.seconds[BY_HEDGEROW], strict=True)
        learned, unseen = (statistics.median(a / b for a, b in zip(*pair, strict=True)) for pair in pairs)
        return learned, unseen


def generate(folder: Path, scale: float, tables: Sequence[str], parts: int) -> None:
    """Tables of TPC-H as Parquet files, in a folder each."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    program = beside if beside.exists() else shutil.which("tpchgen-cli")
    if program is None:
        raise HedgerowError("the tables of TPC-H are made by tpchgen-cli: pip install 'hedgerow[demo]'")
    options = ["-s", f"{scale:g}", "-T", ",".join(tables), "--parts", str(parts), "-o", str(folder), "--quiet"]
    subprocess.run([program, "parquet", *options], check=True)


def random_queries(n: int, seed: int, scale: float) -> list[str]:
    """Queries of four kinds, each with new random literals."""
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


def demo(spark: SparkSession, say: Callable[[str, str], None], scale: float, timed: int = TIMED) -> tuple[Told, Shown]:
    """The whole story, in a folder that is gone in the end, and the picture of the table that was written.

    Args:
        say: is given each step's name, and what came of it.
        timed: of the learned and of the unseen queries, how many are timed.
    """
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-demo-"))
    try:
        return _told(spark, say, folder, scale, timed)
    finally:
        shutil.rmtree(folder)


def _told(
    spark: SparkSession, say: Callable[[str, str], None], folder: Path, scale: float, timed: int
) -> tuple[Told, Shown]:
    has_delta = delta_log.has_delta(spark)
    generate(folder, scale, ["lineitem"], parts=8)
    source = str(folder / "lineitem")
    if has_delta:
        # Statistics would tell nothing: rows are in no order that a query asks for.
        spark.sql(f"CONVERT TO DELTA parquet.{quote_name(source)} NO STATISTICS")
    learned, unseen = random_queries(LEARNED, 1, scale), random_queries(UNSEEN, 2, scale)
    workload, other = hedgerow.Workload.from_sql(learned), hedgerow.Workload.from_sql(unseen)
    rows = _read(spark, source, has_delta).count()
    kind = "a Delta table" if has_delta else "Parquet files"
    say("made", f"{rows:,} rows of TPC-H's lineitem as {kind}; {len(workload)} queries to learn from")

    begun = time.perf_counter()
    layout = hedgerow.learn(spark, source, workload, block_bytes=f"{_block_kb(scale)}KB", table="lineitem")
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
        _zordered(spark, places[BY_ZORDER], _block_kb(scale))
        zorder = time.perf_counter() - begun
        say("beside", f"Delta's OPTIMIZE ZORDER BY ({ZORDER}) of a copy, in {zorder:.0f} s")
    seconds = _seconds(spark, places, has_delta, [learned[:timed], unseen[:timed]])
    rows_read = table.score(workload).rows_read, table.score(other).rows_read
    told = Told(rows, len(table.known), learning, rewriting, zorder, rows_read, seconds)
    return told, hedgerow.show(spark, target, other)


def _block_kb(scale: float) -> int:
    return max(1, round(KB_PER_SCALE * scale))


def _zordered(spark: SparkSession, path: str, block_kb: int) -> None:
    """By files as large as ours, with rows sorted inside of them."""
    delta = "spark.databricks.delta.optimize."
    size = str(block_kb << 10)
    sizes = {f"{delta}maxFileSize": size, f"{delta}minFileSize": size}
    with temporary_settings(spark, {**sizes, "spark.databricks.io.skipping.mdc.sortWithinPartitions": "true"}):
        spark.sql(f"OPTIMIZE delta.{quote_name(path)} ZORDER BY ({ZORDER})")


def _read(spark: SparkSession, path: str, is_delta: bool) -> DataFrame:
    return spark.read.format("delta" if is_delta else "parquet").load(path)


def _seconds(
    spark: SparkSession, places: Mapping[str, str], are_delta: bool, asked: Sequence[Sequence[str]]
) -> dict[str, tuple[list[float], list[float]]]:
    """Of each query over each table, which take turns; all results have to be equal."""
    sessions = {}
    for name, path in places.items():
        sessions[name] = spark.newSession()
        if name == BY_HEDGEROW:
            hedgerow.attach(sessions[name])
        _read(sessions[name], path, are_delta).createOrReplaceTempView("lineitem")
        sessions[name].sql(asked[0][0]).collect()  # the first query of a session takes longer
    seconds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in places}
    for i, queries in enumerate(asked):
        for query in queries:
            results = []
            for name, session in sessions.items():
                begun = time.perf_counter()
                results.append(session.sql(query).collect())
                seconds[name][i].append(time.perf_counter() - begun)
            if any(result != results[0] for result in results):
                raise AssertionError(f"{query} gives {results[0]}, but another answer after the rewriting: {results}")
    return seconds
