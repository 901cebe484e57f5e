"""calibrate: times a few small rewrites of a table, and fits the cost of a large one to them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, HedgerowWarning
from hedgerow.core.learning.seconds import RewriteCost
from hedgerow.pilot.cost import Run, fitted_cost
from hedgerow.pilot.lock import table_lock, trial_folder
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.calibrated_cost import count_items, save_cost
from hedgerow.pipeline.learn import learn
from hedgerow.pipeline.learn_options import QUICK, LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learner_names import DEFAULT, NamedLearner
from hedgerow.pipeline.logged import logged
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import first_line, in_own_session, spark_errors
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.sql.workload import Workload
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS
from hedgerow.tables.query_log import QueryLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIZES = (32 << 20, 128 << 20)  # bytes of the small parts, about


@in_own_session
def calibrate(
    spark: SparkSession,
    table: str,
    workload: Workload | None = None,
    learner: str = DEFAULT,
    options: LearnOptions = QUICK,
    **params: Any,
) -> RewriteCost:
    """Rewrite two small parts of a table into a folder that is then deleted, and return the cost of a rewrite.

    Each part is rewritten with few conditions in the index and with many. The autopilot estimates with this cost, and
    corrects it by each real rewrite.

    Args:
        workload: the queries of the table; by default those of its log.
        learner, options, params: for `learn`.
    """
    log = QueryLog.of(spark, table)
    queries = logged(spark, table) if workload is None else workload
    with table_lock(Folder(spark, log.root)) as holder:
        if holder is not None:
            raise HedgerowError(f"another calibration or autopilot works on {table}: {holder}")
        return _calibrate(spark, table, queries, log, NamedLearner(learner, params), options)


def _calibrate(
    spark: SparkSession, table: str, queries: Workload, log: QueryLog, learner: NamedLearner, options: LearnOptions
) -> RewriteCost:
    with step(spark, "looking at the table"):
        source = open_source(spark, table, queries.only_table())
    parts = [_part(source, size) for size in _SIZES]
    if not parts[-1]:
        raise HedgerowError(f"the files of {table} are not known, so a part of it cannot be rewritten")
    if source.physical:
        raise HedgerowError(
            f"the columns of {table} have other names in its files, so a part of it cannot be rewritten"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # little is to be gained on a part of the table
        learned = learn(spark, parts[-1], queries, learner.name, options, table=source.name, **learner.params)
    runs = []
    with step(spark, "rewriting small parts"):
        for items in (0, MAX_DESCRIBED_ITEMS):
            _time(spark, log, source, parts[0], learned, items)  # warms up
        for part in parts:
            runs += [_time(spark, log, source, part, learned, items) for items in (0, MAX_DESCRIBED_ITEMS)]
    cost = fitted_cost(runs)
    assert cost is not None
    save_cost(Folder(spark, log.root), cost)
    return cost


def _part(source: Source, size: int) -> list[str]:
    """Return some files of about so many bytes."""
    count = round(size * len(source.files) / max(1.0, source.size))
    return list(source.files[: max(1, count)])


def _time(spark: SparkSession, log: QueryLog, source: Source, files: Sequence[str], learned: Learned, most: int) -> Run:
    """Rewrite some files with at most so many items in the index; return the time that it took."""
    place = f"{log.root}/{trial_folder()}"
    begun = perf_counter()
    try:
        apply(spark, files, learned, place, WriteOptions(statistics=most))
    except spark_errors() as error:
        raise HedgerowError(
            f"the files of {source.origin} cannot be read by themselves: {first_line(error)}"
        ) from error
    finally:
        Folder(spark, place).delete()
    seconds = perf_counter() - begun
    return Run(source.size * len(files) / len(source.files), count_items(learned, most), seconds)
