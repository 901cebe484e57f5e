"""Time whole queries over several tables: attached, beside the source and beside tables sorted by hand.

One unseen query of each template is timed. It runs once on all tables: this warms the caches and checks that the
answers are equal. Then it runs some more times, each time in another order of the tables, and the median counts.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.options import Case, Options, learn_arguments
from bench.record import line, progress
from bench.several import Several
from hedgerow.demo.race import comparable, rotated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TURNS = {"quick": 3, "full": 2}
CASES: tuple[Case, ...] = (("mto", {}),)


def run(data: Several, options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    spark = local_session("6g", "local[2]")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    try:
        begun = time.perf_counter()
        in_order = _sorted(spark, data, folder / "sorted")
        sorting = time.perf_counter() - begun
        for case in options.cases(CASES):
            yield _measured(spark, data, case, options, folder / "learned", in_order, sorting)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _sorted(spark: SparkSession, data: Several, folder: Path) -> dict[str, str]:
    """Write every table sorted by its usual column, in files of a block's size."""
    for table, rows in data.rows().items():
        progress(f"{data.suite}: {table} sorted by {data.sorted_by[table]}")
        files = max(1, rows // data.block_rows)
        source, by = spark.read.parquet(str(data.folder / table)), data.sorted_by[table]
        source.repartitionByRange(files, by).sortWithinPartitions(by).write.parquet(str(folder / table))
    return {table: str(folder / table) for table in data.rows()}


def _measured(
    spark: SparkSession,
    data: Several,
    case: Case,
    options: Options,
    folder: Path,
    in_order: Mapping[str, str],
    sorting: float,
) -> dict[str, Any]:
    import hedgerow

    learner, params = case
    sources = {table: str(data.folder / table) for table in data.rows()}
    progress(f"{data.suite}: {learner} {dict(params)}")
    start = time.perf_counter()
    arguments = learn_arguments(case, block_rows=data.block_rows, seed=options.seed)
    learned = hedgerow.learn_tables(spark, sources, data.learned, **arguments)
    learned_at = time.perf_counter()
    tables = hedgerow.apply_tables(spark, sources, learned, str(folder), overwrite=True)
    applied_at = time.perf_counter()
    ways = {"source": sources, "sorted": in_order, "attached": {name: t.path for name, t in tables.items()}}
    took, files = _timed(spark, data, ways, TURNS[options.form])
    middle = {way: {t: median(own) for t, own in of.items()} for way, of in took.items()}
    total = {way: sum(of.values()) for way, of in middle.items()}
    return line(
        suite=f"{data.suite}-physical",
        learner=learner,
        params={"form": options.form, **params},
        sf=data.scale,
        rows=sum(data.rows().values()),
        blocks=sum(len(table.known) for table in tables.values()),
        block_rows=data.block_rows,
        queries=len(data.learned),
        queries_unseen=len(data.unseen_sql),
        ratio=round(total["attached"] / min(total["source"], total["sorted"]), 3),
        learn_seconds=round(learned_at - start, 1),
        apply_seconds=round(applied_at - learned_at, 1),
        details={
            "seconds": {way: round(of, 2) for way, of in total.items()},
            "written_seconds": {"sorted": round(sorting, 1), "attached": round(applied_at - learned_at, 1)},
            "template_ms": {str(t): {way: round(1000 * of[t]) for way, of in middle.items()} for t in middle["source"]},
            "files_by_template": files,
        },
        seed=options.seed,
    )


def _timed(
    spark: SparkSession, data: Several, ways: Mapping[str, Mapping[str, str]], turns: int
) -> tuple[dict[str, dict[int, list[float]]], dict[int, tuple[int, int]]]:
    """Return the seconds of each turn by way and template, and how many of how many files attached queries open."""
    import hedgerow

    sessions = {way: spark.newSession() for way in ways}
    hedgerow.attach(sessions["attached"])
    for way, session in sessions.items():
        for name, path in ways[way].items():
            session.read.parquet(path).createOrReplaceTempView(name)
    took: dict[str, dict[int, list[float]]] = {way: {t: [] for t, _ in data.unseen_sql} for way in ways}
    files: dict[int, tuple[int, int]] = {}
    for template, sql in data.unseen_sql:
        progress(f"{data.suite}: template {template}")
        answers = {way: sorted(map(comparable, session.sql(sql).collect())) for way, session in sessions.items()}
        different = [way for way in ways if answers[way] != answers["source"]]
        assert not different, f"{different[0]} gives another answer: {sql}"
        for turn in range(turns):
            for way in rotated(list(ways), turn):
                begun = time.perf_counter()
                sessions[way].sql(sql)._jdf.queryExecution().toRdd().count()
                took[way][template].append(time.perf_counter() - begun)
        scans = hedgerow.last_query(sessions["attached"])
        files[template] = sum(s.files_opened for s in scans), sum(s.files for s in scans)
    return took, files
