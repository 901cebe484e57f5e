"""The error logs at the size of the qd-tree paper's, in seconds, cold and warm (Fig. 7).

25 million rows of 50 or 58 columns. The paper's learners make 2,000 blocks, as in Table 2; ours takes the size that it
chooses. These tables are read in an attached session. Beside them are the log as it came, which is in the order of
ingestion, a sort, Delta's ZORDER and liquid clustering. Learned and unseen queries each select whole rows.

Each query runs twice on each table: after the table's files were dropped from the page cache, and again. The answers
are equal. `ratio` is the seconds of ours, cold, to those of the best of the log as it came, sort, ZORDER and liquid.

    --param rows=5000000 --param timed=10   another size; so many learned and twice as many unseen queries
    --learner ours --learner BU+            only these; `--param` needs one
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.data.errorlog_data import Shape, table
from bench.data.errorlog_queries import queries
from bench.options import ALGORITHM_1, BOTTOM_UP, TUNED, WOODBLOCK, Case, Options, learn_arguments
from bench.physical import Physical, Way, peers_of
from bench.record import line, progress
from hedgerow.demo.race import answer, rotated
from hedgerow.sql.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = {"quick": 100_000, "full": 25_000_000}
QUERIES, TIMED = {"quick": 100, "full": 1_000}, {"quick": 2, "full": 10}
BLOCKS, FILE_ROWS = 2_000, 600_000  # of the paper's learners; rows in a file of the others, about 32 MB
OURS = "ours"
CASES: Mapping[str, Case] = {
    OURS: ("qdtree", {}),
    "greedy": ALGORITHM_1,
    "BU+": TUNED,
    "Bottom-Up": BOTTOM_UP,
    "WOODBLOCK": WOODBLOCK,
}
QUANTILES = range(0, 101, 10)


def run(shape: Shape, options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow

    rows = int(options.params.get("rows", ROWS[options.form]))
    count = int(options.params.get("timed", TIMED[options.form]))
    names = {name: case for name, case in CASES.items() if not options.learners or name in options.learners}
    texts = queries(shape, options.seed, QUERIES[options.form])
    unseen = queries(shape, ~options.seed, 2 * count)
    timed = [*(("learned", sql) for sql in texts[:count]), *(("unseen", sql) for sql in unseen)]
    learned = Workload.from_sql(texts)
    data = Physical(f"{shape.name}-seconds", "errors", table(shape, rows), learned, timed, "os_build_date")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    spark = hedgerow.session("4g", "local[2]")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        ways = list(peers_of(spark, data, max(2, rows // FILE_ROWS), folder))
        peers = [way.name for way in ways]
        facts = {}
        for name, case in names.items():
            way, facts[name] = _written(spark, data, name, case, rows, folder, options.seed)
            ways.append(way)
        os.sync()  # only then can the files leave the page cache
        cold, warm = _timed(spark, data, ways)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    yield line(
        suite=data.suite,
        learner="qdtree",
        params={"form": options.form},
        rows=rows,
        blocks=facts.get(OURS, {}).get("files"),
        queries=len(texts),
        queries_unseen=len(unseen),
        ratio=round(cold[OURS].sum() / min(cold[name].sum() for name in peers), 3),
        details={
            "cold_seconds": _sums(cold, timed),
            "warm_seconds": _sums(warm, timed),
            "written": facts,
            "times_faster_cold": {
                name: [float(f"{q:.3g}") for q in np.percentile(of / cold[OURS], QUANTILES)]
                for name, of in cold.items()
            },
        },
        seed=options.seed,
    )


def _written(
    spark: SparkSession, data: Physical, name: str, case: Case, rows: int, folder: Path, seed: int
) -> tuple[Way, dict[str, Any]]:
    """Learn and write a table; return how to read it, and its facts."""
    import hedgerow

    progress(f"{data.suite}: {name}")
    sizes = {} if name == OURS else {"block_rows": max(1, rows // BLOCKS)}
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learned = hedgerow.learn(
            spark, str(data.source), data.learned, table=data.name, **learn_arguments(case, seed=seed, **sizes)
        )
    learned_at, place = time.perf_counter(), str(folder / name)
    written = hedgerow.apply(spark, str(data.source), learned, place)
    facts = {
        "files": len(written.files()),
        "learn_seconds": round(learned_at - begun, 1),
        "write_seconds": round(time.perf_counter() - learned_at, 1),
    }
    return Way(name, lambda: spark.read.parquet(place), spark.sql, attached=True), facts


def _timed(
    spark: SparkSession, data: Physical, ways: Sequence[Way]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the seconds of each query on each table: with no page of it cached, and once more."""
    import hedgerow

    files = {way.name: way.files() for way in ways}
    cold, warm = ({way.name: np.zeros(len(data.timed)) for way in ways} for _ in range(2))
    for way in ways:  # compiles the code that all queries need
        way.table().where("machine_id < 0").collect()
    for number, (_, sql) in enumerate(data.timed):
        progress(f"{data.suite}: query {number + 1} of {len(data.timed)}")
        answers = set()
        for way in rotated(ways, number):
            way.table().createOrReplaceTempView(data.name)
            if way.attached:
                hedgerow.attach(spark)
            _drop_from_cache(files[way.name])
            for times in (cold, warm):
                begun = time.perf_counter()
                rows = way.frame(sql).collect()
                times[way.name][number] = time.perf_counter() - begun
            answers.add("\n".join(answer(rows, sql)))
            if way.attached:
                hedgerow.detach(spark)
        assert len(answers) == 1, f"the tables give several answers: {sql}"
    return cold, warm


def _drop_from_cache(files: Sequence[Path]) -> None:
    for file in files:
        opened = os.open(file, os.O_RDONLY)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(opened)


def _sums(seconds: Mapping[str, np.ndarray], timed: Sequence[tuple[str, str]]) -> dict[str, dict[str, float]]:
    """Return the seconds of the learned and of the unseen queries, by table."""
    is_learned = np.array([kind == "learned" for kind, _ in timed])
    return {
        name: {"learned": round(float(of[is_learned].sum()), 2), "unseen": round(float(of[~is_learned].sum()), 2)}
        for name, of in seconds.items()
    }
