"""Several tables and queries that join them: all are learned and written, and all reads are added up.

Tables of less than two blocks are one file. The learners `mto` and `pando` look at joins; every other learns each table
by itself. Rows and blocks are first counted by the conditions of each query. Then the unseen queries are planned in an
attached session, and the files that it opens are counted: with all that joins tell (`attached`), without the ranges of
keys that other tables' open files have (`without_partners`), and without joins at all (`without_joins`).
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

    from hedgerow.core.workload.score import Score
    from hedgerow.pipeline.several_tables import LearnedTables
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
    asked: Sequence[tuple[int, str]] = ()  # the unseen queries in Spark's SQL, each with its template

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

    learner, params = case
    learned_reads, unseen_reads = Reads(), Reads()
    sizes = data.rows()
    sources = {table: str(data.folder / table) for table in sizes}
    progress(f"{data.suite}: seed {options.seed}, {learner} {dict(params)}")
    start = time.perf_counter()
    if learner == "range":
        learned = _sorted_by_hand(spark, data, sources, options)
    else:
        how = {"block_rows": data.block_rows, "seed": options.seed, **params}
        learned = hedgerow.learn(spark, sources, data.learned, learner, **how)
    learned_at = time.perf_counter()
    made = hedgerow.apply(spark, sources, learned, str(to), overwrite=True)
    learning, applying = learned_at - start, time.perf_counter() - learned_at
    written = sum(len(table.known) for table in made.values())
    for table, rows in sizes.items():
        blocks = len(made[table].known)
        for workload, reads in ((data.learned, learned_reads), (data.unseen, unseen_reads)):
            readers = [q.id for q in workload if q.reads(table)]
            if blocks == 1:
                reads.whole(rows, 1, readers)
            elif readers:
                reads.add(made[table].score(workload), rows, blocks)
    attached = _attached(spark, data, {name: table.path for name, table in made.items()}) if data.asked else {}
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
    from hedgerow.pipeline.several_tables import LearnedTables, whole

    layouts = {}
    for table, rows in data.rows().items():
        if rows < 2 * data.block_rows or not any(query.reads(table) for query in data.learned):
            layouts[table] = whole(table, [])
            continue
        how = {"block_rows": data.block_rows, "seed": options.seed, "columns": data.sorted_by[table]}
        layouts[table] = hedgerow.learn(spark, sources[table], data.learned, "range", table=table, **how)
    return LearnedTables(layouts)


_SETTINGS = {
    "attached": {},
    "without_partners": {"hedgerow.partners": "false"},
    "without_joins": {"hedgerow.joins": "false"},
}


def _attached(spark: SparkSession, data: Several, places: Mapping[str, str]) -> dict[str, Any]:
    """The share of files that an attached session opens for the unseen queries, and how many by template."""
    import hedgerow

    for name, path in places.items():
        spark.read.parquet(path).createOrReplaceTempView(name)
    found: dict[str, Any] = {}
    hedgerow.attach(spark)
    try:
        for way, settings in _SETTINGS.items():
            for key, value in settings.items():
                spark.conf.set(key, value)
            by_template: dict[int, list[int]] = {}
            for template, sql in data.asked:
                spark.sql(sql)._jdf.queryExecution().optimizedPlan()
                counts = by_template.setdefault(template, [0, 0])
                for scan in hedgerow.last_query(spark):
                    counts[0] += scan.files_opened
                    counts[1] += scan.files
            total = [sum(counts) for counts in zip(*by_template.values(), strict=True)]
            found[way] = round(total[0] / total[1], 4)
            if way == "attached":
                found["files_by_template"] = by_template
            for key in settings:
                spark.conf.unset(key)
    finally:
        hedgerow.detach(spark)
    return found
