"""TPC-H's lineitem with six kinds of queries: the rows that they read of learned blocks, and seconds beside peers.

120 queries are learned from, and 120 unseen ones are of the same kinds. Files have about 16 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from bench.data.cache import cache_folder
from bench.options import Options, learn_arguments
from bench.physical import Physical
from bench.physical import run as run_physical
from bench.record import line, progress
from bench.suites import tpch
from bench.written import run as run_engines

SCALE = {"quick": 0.2, "full": 10.0}
LEARNED, UNSEEN = 120, 120
TIMED = {"quick": 6, "full": 12}
FILE_BYTES, BYTES_PER_SF = 16_000_000, 230_000_000
MIN_FILES = 20
SORTED_BY, CLUSTERED_BY = "l_shipdate", ("l_shipdate", "l_partkey", "l_suppkey", "l_orderkey")


def run(options: Options) -> Iterator[dict[str, Any]]:
    import hedgerow as hr
    from hedgerow.spark.start.session import local_session

    scale, source = _table(options)
    workload, unseen = (hr.Workload.from_sql(texts) for texts in _texts(options, scale, UNSEEN))
    spark = local_session("4g", "local[2]")
    try:
        for learner, params in options.cases((("qdtree", {}),)):
            progress(f"lineitem: scale factor {scale:g}, {learner}")
            rows = ds.dataset(source).count_rows()
            block_rows = rows // _files(scale)
            learned = hr.learn(
                spark, source, workload, **learn_arguments((learner, params), block_rows=block_rows, seed=options.seed)
            )
            scores = [
                hr.score(spark, source, queries, learned, seed=options.seed + 1) for queries in (workload, unseen)
            ]
            yield line(
                suite="lineitem",
                learner=learner,
                params={"form": options.form, **params},
                sf=scale,
                rows=rows,
                blocks=learned.blocks,
                block_rows=block_rows,
                queries=LEARNED,
                queries_unseen=UNSEEN,
                bound=scores[0].selectivity,
                bound_unseen=scores[1].selectivity,
                rows_read=round(scores[0].rows_read, 5),
                rows_read_unseen=round(scores[1].rows_read, 5),
                fit_seconds=learned.fit_seconds,
                seed=options.seed,
            )
    finally:
        spark.stop()


def physical(options: Options) -> Iterator[dict[str, Any]]:
    """Time queries on written tables, beside peers."""
    yield from run_physical(sums(options, "lineitem-physical"), options.cases((("qdtree", {}),)), options)


def engines(options: Options) -> Iterator[dict[str, Any]]:
    """Time queries under Spark and under Comet."""
    yield from run_engines(sums(options, "engines"), options)


def sums(options: Options, suite: str) -> Physical:
    """Return the table with unseen queries to time, each a sum."""
    learned, unseen = _texts(options, options.sf or SCALE[options.form], TIMED[options.form])
    timed = [(f"kind {1 + i % tpch.KINDS}", text) for i, text in enumerate(unseen)]
    return described(options, suite, learned, timed)


def described(options: Options, suite: str, learned: list[str], timed: list[tuple[str, str]]) -> Physical:
    """Return the table with the queries to learn from, and those to time, by their kinds."""
    import hedgerow as hr

    scale, source = _table(options)
    return Physical(
        *(suite, "lineitem", Path(source), hr.Workload.from_sql(learned), timed, SORTED_BY),
        fields={"sf": scale},
        files=_files(scale),
        clustered_by=CLUSTERED_BY,
    )


def _table(options: Options) -> tuple[float, str]:
    scale = options.sf or SCALE[options.form]
    return scale, tpch.lineitem(cache_folder() / "growth", scale, parts=16)


def _texts(options: Options, scale: float, unseen: int) -> tuple[list[str], list[str]]:
    # Seeds of learned queries are 0 or more, so ~seed, which is negative, is never one of them.
    return tpch.questions(LEARNED, scale, options.seed), tpch.questions(unseen, scale, ~options.seed)


def _files(scale: float) -> int:
    return max(MIN_FILES, round(scale * BYTES_PER_SF / FILE_BYTES))
