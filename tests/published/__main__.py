"""`python -m tests.published tpcds|tpch|sql-tests`: a published suite with pruning and without; a line for each format.

Only what differs and the counts go to stdout; the exit code says whether anything differed. With HEDGEROW_COMET_JAR,
all runs are under Comet.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.logger import PySparkLogger

import hedgerow as hr
from bench.comet import comet_settings
from tests.published import sqltests, tpc
from tests.published.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.published", description=__doc__)
    parser.add_argument("suite", choices=("tpcds", "tpch", "sql-tests"))
    parser.add_argument("--inputs", type=Path, help=f"for sql-tests. {sqltests.HOW}")
    parser.add_argument("--only", nargs="*", default=[], help="numbers of queries, or names of input files")
    parser.add_argument("--format", choices=tpc.FORMATS, help="only Parquet or only Delta")
    parser.add_argument("--scale", type=float)
    parser.add_argument("--joined", action="store_true", help="layouts that look at joined tables")
    parser.add_argument("--rounds", type=int, default=0, help="with --joined: changes of every Delta table")
    parser.add_argument("--seed", type=int, default=0, help="of the changes")
    options = parser.parse_args()
    if options.suite == "sql-tests" and options.inputs is None:
        parser.error(sqltests.HOW)
    started, differs = time.perf_counter(), False
    with tempfile.TemporaryDirectory(prefix="hedgerow-published-") as folder:
        for tally in run(options, Path(folder)):
            print("\n".join(tally.lines()), flush=True)
            differs = differs or bool(tally.different)
    print(f"{time.perf_counter() - started:.0f} s with {hr.__file__}", file=sys.stderr)
    return int(differs)


def run(options: argparse.Namespace, folder: Path) -> Iterator[Tally]:
    own = {"spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    own["spark.databricks.delta.snapshotPartitions"] = "2"
    spark = hr.session("3g", "local[2]", **own, **comet_settings("1g"))
    spark.sparkContext.setLogLevel("OFF")
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True  # PySpark's own: many statements are meant to fail
    try:
        if options.suite == "sql-tests":
            yield sqltests.run(spark, options.inputs, folder, options.only)
            return
        formats = [options.format] if options.format else tpc.FORMATS
        source = tpc.tables(options.suite, options.scale)
        only = [int(n) for n in options.only]
        if options.joined:
            yield from tpc.run_joined(spark, options.suite, source, folder, only, formats, options.rounds, options.seed)
        else:
            yield from tpc.run(spark, options.suite, source, folder, only, formats)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
