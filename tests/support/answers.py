"""What a query answers, in a form that can be compared, and how many files each of its scans opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import hedgerow as hr
from hedgerow.core.predicates.sql_text import in_backticks
from hedgerow.spark.start.session import configured, temporary_settings

_COMET_SCANS = ("CometScanExec", "CometNativeScanExec")
_PASS = 40  # conditions that are evaluated in one pass over a table
_HALVES = "shiftright(_hash, 32)", "_hash & 4294967295"


@dataclass(frozen=True)
class Answer:
    """Rows in any order: how many, and the sum of their hashes."""

    rows: int
    checksum: Decimal
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Scan:
    """One scan of files in an executed plan; `root` is the first path it was given.

    by_comet: the scan was not Spark's."""

    root: str
    files: int
    by_comet: bool = False


@contextmanager
def attached_to(spark: SparkSession) -> Iterator[None]:
    """Attach the session for a while."""
    hr.attach(spark)
    try:
        yield
    finally:
        hr.detach(spark)


def without_skipping(spark: SparkSession) -> AbstractContextManager[None]:
    """Let an attached session open all files for a while."""
    return temporary_settings(spark, {"hedgerow.enabled": "false"})


def ask(frame: DataFrame) -> tuple[Answer, list[Scan]]:
    """Run the query, once: its answer, and the scans that were run for it."""
    [found], opened = ask_all([frame])
    return found, opened


def ask_all(frames: Sequence[DataFrame]) -> tuple[list[Answer], list[Scan]]:
    """The answers of many queries, which run as one, each with scans of its own; and these scans."""
    hashed = []
    for i, frame in enumerate(frames):
        plain = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))  # a join may give one name twice
        hashed.append(plain.selectExpr(f"{i} AS q", f"{row_hash(plain)} AS h"))
    sums = f.count("*").alias("n"), f.expr("sum(CAST(h AS DECIMAL(38)))").alias("s")
    summed = reduce(DataFrame.unionAll, hashed).groupBy(*["q"] * (len(hashed) > 1)).agg(*sums)
    rows = {row["q"] if len(hashed) > 1 else 0: row for row in summed.collect()}
    none = {"n": 0, "s": None}
    sums_of = [rows.get(i, none) for i in range(len(frames))]
    found = [Answer(s["n"], s["s"] or Decimal(0), columns_of(q)) for s, q in zip(sums_of, frames, strict=True)]
    return found, list(scans(summed))


def answer(frame: DataFrame) -> Answer:
    return ask(frame)[0]


def columns_of(frame: DataFrame) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)


def opened(frame: DataFrame, condition: str) -> tuple[int, int]:
    """The files that an attached query opens, and all; its answer is compared with that of a pass over all rows."""
    with attached_to(frame.sparkSession):
        attached = answer(frame.where(condition))
        [scan] = hr.last_query(frame.sparkSession)
    assert [attached] == answers(frame, [condition]), condition
    return scan.files_opened, scan.files


def opened_by_each(frame: DataFrame, conditions: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The same of many conditions: each is planned by itself, and all run as one query."""
    spark, files = frame.sparkSession, {}
    with attached_to(spark):
        for condition in conditions:
            frame.where(condition)._jdf.queryExecution().optimizedPlan()
            [scan] = hr.last_query(spark)
            files[condition] = scan.files_opened, scan.files
        found, _ = ask_all([frame.where(condition) for condition in conditions])
    for condition, attached, plain in zip(conditions, found, answers(frame, conditions), strict=True):
        assert attached == plain, condition
    return files


def row_hash(frame: DataFrame) -> str:
    """Spark's own hash skips NULLs, so that (NULL, 1) would be as (1, NULL): each column also says whether it is one."""
    names = {f.name: in_backticks(f.name) for f in frame.schema.fields}
    maps = {f.name for f in frame.schema.fields if isinstance(f.dataType, t.MapType)}
    values = {name: f"map_entries({quoted})" if name in maps else quoted for name, quoted in names.items()}
    parts = [f"{values[name]}, {quoted} IS NULL" for name, quoted in names.items()]
    return f"xxhash64({', '.join(parts)})"


def answers(frame: DataFrame, conditions: Sequence[str], wanted: Sequence[str] | None = None) -> list[Answer]:
    """The wanted columns of the rows that each condition leaves, many conditions in one pass."""
    shown = frame if wanted is None else frame.select(*wanted)
    columns = columns_of(shown)
    hashed = frame.selectExpr("*", f"{row_hash(shown)} AS _hash")
    found: list[Answer] = []
    for start in range(0, len(conditions), _PASS):
        some = conditions[start : start + _PASS]
        counts = [f"count(CASE WHEN {c} THEN 1 END)" for c in some]
        halves = [f"sum(CASE WHEN {c} THEN {h} ELSE 0 END)" for h in _HALVES for c in some]  # decimals would be slow
        with configured(frame.sparkSession, codegen__hugeMethodLimit=8000):  # Java compiles no method larger than that
            [row] = hashed.selectExpr(*counts, *halves).collect()
        n = len(some)
        found += [Answer(row[i], Decimal(((row[n + i] or 0) << 32) + (row[2 * n + i] or 0)), columns) for i in range(n)]
    return found


def scans(executed: DataFrame) -> Iterator[Scan]:
    """The scans in the final plan of a frame that was run; what a reused exchange reads is read only once."""
    yield from _scans(executed._jdf.queryExecution().executedPlan())


def _scans(plan: Any) -> Iterator[Scan]:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    elif kind in ("FileSourceScanExec", *_COMET_SCANS):
        root = plan.relation().location().rootPaths().headOption()
        files = plan.metrics().apply("numFiles").value()
        yield Scan(root.get().toString() if root.isDefined() else "", files, kind in _COMET_SCANS)
    elif not kind.startswith("Reused"):
        for below in (plan.children(), plan.subqueries()):
            for i in range(below.size()):
                yield from _scans(below.apply(i))
