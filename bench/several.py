"""Several tables and queries that join them: every table is learned and written by itself, and all reads are added up.

Tables of less than two blocks stay as they are and are read whole, as is a table on which no query has a condition.
A learner that looks at joins is given none here: `hedgerow.learn` has one table at a time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from bench.options import Case, Options
from bench.record import line, progress
from bench.report.quality import better

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.core.learning.score import Score
    from hedgerow.sql.workload import Workload

SHARES = 1.0, 1.0  # of what tables read that are sorted by hand, on learned and on unseen queries


@dataclass(frozen=True)
class Several:
    """`folder` has a folder of Parquet files for each table; `sorted_by` is by what people sort each by hand."""

    suite: str
    folder: Path
    scale: float
    learned: Workload
    unseen: Workload
    sorted_by: Mapping[str, str]
    block_rows: int

    def rows(self) -> dict[str, int]:
        return {f.name: ds.dataset(f).count_rows() for f in sorted(self.folder.iterdir())}


def schemas_of(folder: Path) -> dict[str, Any]:
    """Of the tables whose files lie in folders of their names."""
    return {f.name: ds.dataset(f).schema for f in sorted(folder.iterdir())}


@dataclass
class Reads:
    """What queries read of tables, in rows and in blocks, and what they would read if nothing was skipped."""

    rows: float = 0.0
    blocks: float = 0.0
    all_rows: float = 0.0
    all_blocks: float = 0.0
    queries: set[str] = field(default_factory=set)

    def add(self, score: Score, rows: int, blocks: int) -> None:
        for q in score.queries:
            self.rows += q.rows_read * rows
            self.blocks += q.blocks_read * blocks
        self.whole(rows, blocks, [q.id for q in score.queries], read=False)

    def whole(self, rows: int, blocks: int, queries: Sequence[str], read: bool = True) -> None:
        self.all_rows += rows * len(queries)
        self.all_blocks += blocks * len(queries)
        if read:
            self.rows += rows * len(queries)
            self.blocks += blocks * len(queries)
        self.queries.update(queries)


def run(data: Several, cases: Sequence[Case], options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    spark = local_session("4g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        found = []
        for case in options.cases(tuple(cases)):
            found.append(measured(spark, data, case, options, folder / "table"))
            yield found[-1]
        better(found, "range", *SHARES)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measured(spark: SparkSession, data: Several, case: Case, options: Options, to: Path) -> dict[str, Any]:
    import hedgerow
    from hedgerow.core.predicates.nodes import TRUE

    learner, params = case
    learned_reads, unseen_reads = Reads(), Reads()
    sizes = data.rows()
    written, learning, applying = 0, 0.0, 0.0
    for table, rows in sizes.items():
        both = tuple(zip((data.learned, data.unseen), (learned_reads, unseen_reads), strict=True))
        readers = [[q for q in workload if q.reads(table)] for workload, _ in both]
        if rows < 2 * data.block_rows or all(q.predicate(table) == TRUE for q in readers[0]):
            written += max(1, rows // data.block_rows)
            for queries, (_, reads) in zip(readers, both, strict=True):
                reads.whole(rows, max(1, rows // data.block_rows), [q.id for q in queries])
            continue
        progress(f"{data.suite}: seed {options.seed}, {learner} {dict(params)}, {table}")
        own = {**params, "columns": data.sorted_by[table]} if learner == "range" else params
        start = time.perf_counter()
        layout = hedgerow.learn(
            spark,
            str(data.folder / table),
            data.learned,
            learner,
            block_rows=data.block_rows,
            seed=options.seed,
            table=table,
            **own,
        )
        learned_at = time.perf_counter()
        made = hedgerow.apply(spark, str(data.folder / table), layout, str(to), overwrite=True, table=table)
        learning, applying = learning + learned_at - start, applying + time.perf_counter() - learned_at
        blocks = len(made.known)
        written += blocks
        for workload, reads in both:
            reads.add(made.score(workload), rows, blocks)
    return line(
        suite=data.suite,
        learner=learner,
        params={"form": options.form, **params},
        sf=data.scale,
        rows=sum(sizes.values()),
        blocks=written,
        block_rows=data.block_rows,
        queries=len(data.learned),
        queries_unseen=len(data.unseen),
        rows_read=round(learned_reads.rows / learned_reads.all_rows, 4),
        rows_read_unseen=round(unseen_reads.rows / unseen_reads.all_rows, 4),
        blocks_read=round(learned_reads.blocks / learned_reads.all_blocks, 4),
        blocks_read_unseen=round(unseen_reads.blocks / unseen_reads.all_blocks, 4),
        learn_seconds=round(learning, 1),
        apply_seconds=round(applying, 1),
        details={"blocks_a_query": round(unseen_reads.blocks / len(unseen_reads.queries), 2)},
        seed=options.seed,
    )
