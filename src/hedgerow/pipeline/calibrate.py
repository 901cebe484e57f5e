"""calibrate: times a few small rewrites of a table, from which the seconds of a large one can be told."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, HedgerowWarning
from hedgerow.core.learning.rewrite_cost import RewriteCost, Run, cost_of
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.inputs import opened_with_queries
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.log import logged
from hedgerow.pipeline.one_at_a_time import alone, trial_folder
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, in_own_session, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.tables.known_files import SIDE
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS = f"{SIDE}/rewrite_runs.json"
_SIZES = (32 << 20, 128 << 20)  # about, of the parts that are rewritten


@in_own_session
def calibrate(
    spark: SparkSession, table: str, workload: Workload | None = None, learner: str = "qdtree", **how: Any
) -> RewriteCost:
    """Rewrite two small parts of a table into a folder that is then deleted, with few conditions in the index and with
    all; the autopilot estimates by what was timed, and by each real rewrite since.

    Args:
        workload: the queries of the table; by default those of its log.
        how: for `learn`, such as block_bytes="128MB".
    """
    log = QueryLog.of(spark, table)
    queries = logged(spark, table) if workload is None else workload
    with alone(Folder(spark, log.root)) as holder:
        if holder is not None:
            raise HedgerowError(f"another calibration or autopilot works on {table}: {holder}")
        return _calibrated(spark, table, queries, log, learner, how)


def _calibrated(
    spark: SparkSession, table: str, queries: Workload, log: QueryLog, learner: str, how: dict[str, Any]
) -> RewriteCost:
    with step(spark, "looking at the table"):
        source, _, _ = opened_with_queries(spark, table, queries, None)
    parts = [_part(source, size) for size in _SIZES]
    if not parts[-1]:
        raise HedgerowError(f"the files of {table} are not known, so a part of it cannot be rewritten")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # of what is to be gained by a part of the table
        learned = learn(spark, parts[-1], queries, learner, table=source.name, **{"effort": "quick", **how})
    runs = []
    with step(spark, "rewriting small parts"):
        for items in (0, MAX_DESCRIBED_ITEMS):
            _timed(spark, log, source, parts[0], learned, items)  # warms up
        for part in parts:
            runs += [_timed(spark, log, source, part, learned, items) for items in (0, MAX_DESCRIBED_ITEMS)]
    Folder(spark, log.root).write(_RUNS, json.dumps([asdict(run) for run in runs]).encode())
    found = cost_of(runs)
    assert found is not None
    return found


def calibrated(spark: SparkSession, log: QueryLog) -> list[Run]:
    """The runs that `calibrate` timed on this table; none, if it was not called or its note is damaged."""
    folder = Folder(spark, log.root)
    try:
        saved = folder.read_json(_RUNS) if folder.exists(_RUNS) else []
        return [Run(float(run["size"]), int(run["items"]), float(run["seconds"])) for run in saved]
    except (ValueError, KeyError, TypeError):
        return []


def items_in(learned: Learned, limit: int = MAX_DESCRIBED_ITEMS) -> int:
    """How many items the index of a table in this layout describes."""
    return len(items_to_index(learned.layout, learned.predicates, learned.noted, learned.joined, limit))


def _part(source: Source, size: int) -> list[str]:
    count = round(size * len(source.files) / max(1.0, source.size))
    return list(source.files[: max(1, count)])


def _timed(
    spark: SparkSession, log: QueryLog, source: Source, files: Sequence[str], learned: Learned, most: int
) -> Run:
    place = f"{log.root}/{trial_folder()}"
    begun = perf_counter()
    try:
        apply(spark, files, learned, place, table=source.name, statistics=most)
    except spark_errors() as error:
        raise HedgerowError(
            f"the files of {source.origin} cannot be read by themselves: {first_line(error)}"
        ) from error
    finally:
        Folder(spark, place).delete()
    seconds = perf_counter() - begun
    return Run(source.size * len(files) / len(source.files), items_in(learned, most), seconds)
