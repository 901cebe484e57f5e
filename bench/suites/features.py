"""Skipped volume and seconds of rewrites by their numbers of features (thesis, Table 5.1 and Figs. 5.1 to 5.4).

A web log is rewritten in a Z-order of the first `zorder` of four columns and of row groups by `sop` conditions; its
index describes `more` further conditions. Queries compare the four columns with new literals each time, or repeat one
of twelve conditions.

    Table 5.1     the volume that queries skip: as virtual files of a sample say, divided by that of the written files
    Figs. 5.1-4   the seconds of the rewrite: by the size of the table, and by each number of features

The last line has the cost that fits all rewrites best: `seconds = fixed + GB * (base + a * zorder + b * sop + c * more
+ d if there are row groups)`, which is the thesis' cost (5.1.5) with a fixed part, because our tables are small. Its
`ratio` is the mean error of the fitted seconds; its details also have the error of a cost that counts bytes alone.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.data.web_log import DAYS, FIRST_DAY, users, web_log
from bench.options import Options
from bench.record import line, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hedgerow.pipeline.learned import Learned
    from hedgerow.sql.workload import Workload

SIZES = {"quick": (40_000, 80_000), "full": (500_000, 1_000_000, 2_000_000)}
BLOCKS = {"quick": 20, "full": 100}
QUERIES = 160
COLUMNS = ("ts", "user_id", "latency_ms", "bytes")
RECURRING = (
    *("url LIKE '%/checkout%'", "url LIKE '%ref=42%'", "agent LIKE '%(host 7%'", "substring(country, 1, 1) = 'g'"),
    *("url LIKE '%/view'", "length(url) > 24", "agent LIKE '%.3 (%'", "url LIKE '/shop/1%/view'"),
    *("status % 100 = 3", "url LIKE '%ref=1%'", "agent LIKE '%/11.%'", "pmod(user_id, 16) = 5"),
)
ZORDER, SOP, MORE = (0, 1, 2, 3), (0, 4, 8, 12), 12


@dataclass(frozen=True)
class Features:
    """How many columns are in the Z-order, how many conditions form groups, and how many more the index describes."""

    zorder: int
    sop: int
    more: int = 0


GRID = tuple(Features(z, s) for z in ZORDER for s in SOP if z or s)  # without features, there is nothing to lay out
ONE_BY_ONE = (
    *(Features(z, 0) for z in (1, 2, 3, 4)),
    *(Features(1, s) for s in SOP[1:]),
    *(Features(1, 0, MORE // 2), Features(1, 0, MORE)),
)
QUICK = (Features(1, 0), Features(0, 4), Features(2, 4), Features(1, 0, MORE))


def run(options: Options) -> Iterator[dict[str, Any]]:
    from hedgerow.spark.start.session import local_session

    form = options.form
    spark = local_session("3g", "local[2]", spark_sql_shuffle_partitions="8")
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    lines: list[dict[str, Any]] = []
    try:
        for rows in SIZES[form]:
            in_grid = form == "full" and rows == SIZES[form][1]
            some = QUICK if form == "quick" else tuple(dict.fromkeys((*(GRID if in_grid else ()), *ONE_BY_ONE)))
            source = web_log(rows)
            workload = _workload(rows, options.seed)
            if not lines:  # the first rewrite of a session is slow
                _rewritten(spark, source, workload, some[0], rows, options, folder / "warm-up")
            for features in some:
                progress(f"features: {rows:,} rows, {features}")
                lines.append(_rewritten(spark, source, workload, features, rows, options, folder / "table"))
                yield lines[-1]
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    yield _fitted(lines, options)


def questions(rows: int, n: int, seed: int) -> list[str]:
    """Return queries: half repeat one of the recurring conditions, half have one or two ranges of changing literals."""
    r = random.Random(seed)
    often = [1 / (k + 2) for k in range(len(RECURRING))]
    return [f"SELECT * FROM log WHERE {_condition(r, rows, often)}" for _ in range(n)]


def _condition(r: random.Random, rows: int, often: Sequence[float]) -> str:
    if r.random() < 0.5:
        return r.choices(RECURRING, often)[0]
    return " AND ".join(_range(r, column, rows) for column in r.sample(COLUMNS, r.choice((1, 2))))


def _range(r: random.Random, column: str, rows: int) -> str:
    if column == "ts":
        first = datetime.combine(FIRST_DAY, datetime.min.time()) + timedelta(minutes=r.randrange(DAYS * 1440))
        return f"ts BETWEEN TIMESTAMP '{first}' AND TIMESTAMP '{first + timedelta(minutes=r.randrange(60, 10_000))}'"
    widest = {"user_id": users(rows), "latency_ms": 400, "bytes": 40_000}[column]
    low = int(widest * r.random() ** (2.5 if column == "user_id" else 1.0))
    return f"{column} BETWEEN {low} AND {low + int(widest * r.uniform(0.01, 0.15))}"


def _workload(rows: int, seed: int) -> Workload:
    import hedgerow as hr

    return hr.Workload.from_sql(questions(rows, QUERIES, seed))


def _rewritten(
    spark: SparkSession,
    source: Path,
    workload: Workload,
    features: Features,
    rows: int,
    options: Options,
    to: Path,
) -> dict[str, Any]:
    import hedgerow as hr

    learned = _learned(spark, source, workload, features, rows // BLOCKS[options.form], options.seed)
    estimated = 1 - _bytes_read(spark, source, workload, learned, options.seed + 1)
    begun = time.perf_counter()
    at_most = hr.WriteOptions(statistics=len(learned.layout.features) + features.more, lookup_share=0.0)
    table = hr.apply(spark, str(source), learned, str(to), at_most, overwrite=True)
    seconds = time.perf_counter() - begun
    skipped = 1 - table.score(workload).bytes_read
    size = sum(file.stat().st_size for file in source.glob("*.parquet"))
    return line(
        suite="features",
        learner="sop_zorder" if features.sop else "zorder",
        params={"form": options.form, "zorder": features.zorder, "sop": features.sop, "more": features.more},
        rows=rows,
        blocks=learned.blocks,
        queries=QUERIES,
        ratio=round(estimated / skipped, 3) if skipped else None,
        fit_seconds=round(learned.fit_seconds or 0.0, 2),
        details={
            "megabytes": round(size / (1 << 20), 1),
            "seconds": round(seconds, 2),
            "skipped": round(skipped, 4),
            "estimated": round(estimated, 4),
        },
        seed=options.seed,
    )


def _learned(
    spark: SparkSession, source: Path, workload: Workload, features: Features, block_rows: int, seed: int
) -> Learned:
    import hedgerow as hr

    options = hr.LearnOptions(block_rows=block_rows, recurrence=1, seed=seed, lookup_share=0.0)
    columns = COLUMNS[: features.zorder]
    if not features.sop:
        return hr.learn(spark, str(source), workload, "zorder", options, columns=columns)
    params = {"columns": columns} if columns else {"most": 0}
    return hr.learn(spark, str(source), workload, "sop_zorder", options, cost="sop", features=features.sop, **params)


def _bytes_read(spark: SparkSession, source: Path, workload: Workload, learned: Learned, seed: int) -> float:
    """Return the share of the bytes that queries read, by virtual files of a sample (5.2)."""
    from hedgerow.pipeline.inputs import opened_with_queries
    from hedgerow.pipeline.score import score_source

    opened, queries, _ = opened_with_queries(spark, str(source), workload, learned.table)
    return score_source(opened, queries, learned, None, seed, exact=False).bytes_read


def _fitted(lines: Sequence[dict[str, Any]], options: Options) -> dict[str, Any]:
    """Return the line of the cost that fits these rewrites best."""
    seconds = np.array([of["details"]["seconds"] for of in lines])
    gigabytes = np.array([of["details"]["megabytes"] / 1024 for of in lines])
    counts = np.array([[of["params"][name] for name in ("zorder", "sop", "more")] for of in lines], float)
    grouped = counts[:, 1] > 0
    names = "fixed", "base", "zorder", "sop", "more", "row groups"
    parts = np.column_stack([np.ones(len(lines)), gigabytes, gigabytes[:, None] * np.column_stack([counts, grouped])])
    cost, error = fitted(parts, seconds)
    return line(
        suite="features",
        params={"form": options.form, "cost": "all features"},
        ratio=round(error, 3),
        details={
            "seconds_per_gb": dict(zip(names, cost.round(2).tolist(), strict=True)),
            "error_by_bytes_alone": round(fitted(parts[:, :2], seconds)[1], 3),
        },
        seed=options.seed,
    )


def fitted(parts: Any, seconds: Any) -> tuple[Any, float]:
    """Return the cost of each part, by the least relative error, and the mean of the relative errors.

    >>> cost, error = fitted(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0]]), np.array([3.0, 5.0, 9.0]))
    >>> cost.round(6).tolist(), round(error, 6)
    ([1.0, 2.0], 0.0)
    """
    relative = parts / seconds[:, None]
    cost = np.linalg.lstsq(relative, np.ones(len(seconds)), rcond=None)[0]
    return cost, float(np.abs(relative @ cost - 1).mean())
