"""Learn and write several tables that queries join, and add up what queries read of all tables.

A table of less than two blocks is one file. The learners `mto` and `pando` use the joins; every other learner looks at
one table at a time. First, rows and blocks are counted by the conditions of each query. Then an attached session plans
the unseen queries, and the files that it opens are counted in three ways: with all conditions from joins (`attached`),
without the ranges of keys in the open files of other tables (`without_partners`), without joins (`without_joins`).
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

from bench.options import Case, Options, learn_arguments
from bench.record import line, progress
from bench.report.quality import better

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.core.workload.score import Score
    from hedgerow.pipeline.learned_tables import LearnedTables
    from hedgerow.sql.workload import Workload

SHARES = 1.0, 1.0  # most rows read, as shares of those read of tables sorted by hand: learned and unseen queries


@dataclass(frozen=True)
class Several:
    """Several tables with two workloads.

    `folder` has a folder of Parquet files for each table. `sorted_by`: the usual sort column of each table.
    """

    suite: str
    folder: Path
    scale: float
    learned: Workload
    unseen: Workload
    sorted_by: Mapping[str, str]
    block_rows: int
    unseen_sql: Sequence[tuple[int, str]] = ()  # template and Spark SQL of each unseen query

    def rows(self) -> dict[str, int]:
        return {f.name: ds.dataset(f).count_rows() for f in sorted(self.folder.iterdir())}


def schemas_of(folder: Path) -> dict[str, Any]:
    """Return the schema of each table of a folder, which has a folder of files for each."""
    return {f.name: ds.dataset(f).schema for f in sorted(folder.iterdir())}


@dataclass
class Reads:
    """The rows and blocks that queries read, and how many they would read without skipping."""

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
        lines = []
        for case in options.cases(tuple(cases)):
            lines.append(measured(spark, data, case, options, folder / "table"))
            yield lines[-1]
        better(lines, "range", *SHARES)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def measured(spark: SparkSession, data: Several, case: Case, options: Options, to: Path) -> dict[str, Any]:
    import hedgerow

    learner, params = case
    learned_reads, unseen_reads = Reads(), Reads()
    sizes = data.rows()
    sources = {table: str(data.folder / table) for table in sizes}
    progress(f"{data.suite}: seed {options.seed}, {learner} {dict(params)}")
    start = time.perf_counter()
    if learner == "range":
        learned = _sorted_by_hand(spark, data, sources, options)
    else:
        arguments = learn_arguments(case, block_rows=data.block_rows, seed=options.seed)
        learned = hedgerow.learn_tables(spark, sources, data.learned, **arguments)
    learned_at = time.perf_counter()
    tables = hedgerow.apply_tables(spark, sources, learned, str(to), overwrite=True)
    learning, applying = learned_at - start, time.perf_counter() - learned_at
    written = sum(len(table.known) for table in tables.values())
    for table, rows in sizes.items():
        blocks = len(tables[table].known)
        for workload, reads in ((data.learned, learned_reads), (data.unseen, unseen_reads)):
            readers = [q.id for q in workload if q.reads(table)]
            if blocks == 1:
                reads.whole(rows, 1, readers)
            elif readers:
                reads.add(tables[table].score(workload), rows, blocks)
    attached = _attached(spark, data, {name: table.path for name, table in tables.items()}) if data.unseen_sql else {}
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
        details={"blocks_a_query": round(unseen_reads.blocks / len(unseen_reads.queries), 2), **attached},
        seed=options.seed,
    )


def _sorted_by_hand(spark: SparkSession, data: Several, sources: Mapping[str, str], options: Options) -> LearnedTables:
    import hedgerow
    from hedgerow.pipeline.learned_tables import LearnedTables, in_one_block

    layouts = {}
    for table, rows in data.rows().items():
        if rows < 2 * data.block_rows or not any(query.reads(table) for query in data.learned):
            layouts[table] = in_one_block(table, [])
            continue
        case = "range", {"columns": data.sorted_by[table]}
        arguments = learn_arguments(case, block_rows=data.block_rows, seed=options.seed)
        layouts[table] = hedgerow.learn(spark, sources[table], data.learned, table=table, **arguments)
    return LearnedTables(layouts)


_SETTINGS = {
    "attached": {},
    "without_partners": {"hedgerow.partners": "false"},
    "without_joins": {"hedgerow.joins": "false"},
}


def _attached(spark: SparkSession, data: Several, places: Mapping[str, str]) -> dict[str, Any]:
    """Return the share of files that an attached session opens for the unseen queries, and their number by template."""
    import hedgerow

    for name, path in places.items():
        spark.read.parquet(path).createOrReplaceTempView(name)
    shares: dict[str, Any] = {}
    hedgerow.attach(spark)
    try:
        for way, settings in _SETTINGS.items():
            for key, value in settings.items():
                spark.conf.set(key, value)
            by_template: dict[int, list[int]] = {}
            for template, sql in data.unseen_sql:
                spark.sql(sql)._jdf.queryExecution().optimizedPlan()
                counts = by_template.setdefault(template, [0, 0])
                for scan in hedgerow.last_query(spark):
                    counts[0] += scan.files_opened
                    counts[1] += scan.files
            total = [sum(counts) for counts in zip(*by_template.values(), strict=True)]
            shares[way] = round(total[0] / total[1], 4)
            if way == "attached":
                shares["files_by_template"] = by_template
            for key in settings:
                spark.conf.unset(key)
    finally:
        hedgerow.detach(spark)
    return shares
