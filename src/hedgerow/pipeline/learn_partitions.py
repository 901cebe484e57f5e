"""learn_partitions: learns a layout for each of some partitions of a Delta table, several at once.

Each layout follows the values of its own partitions, and has a sample of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, HedgerowWarning, counted, warn
from hedgerow.core.progress import Progress
from hedgerow.core.time_left import TimeLeft
from hedgerow.core.workload.queries import Workload
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learn import learn_layout, opened_for
from hedgerow.pipeline.learn_options import LearnOptions
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learned_partitions import LearnedPartitions, files_of
from hedgerow.pipeline.learner_names import DEFAULT, NamedLearner
from hedgerow.spark.start.at_once import each_at_once
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.source import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@in_own_session
def learn_partitions(
    spark: SparkSession,
    source: str,
    workload: Workload,
    learner: str = DEFAULT,
    options: LearnOptions = LearnOptions(),
    *,
    partitions: Sequence[str] | None = None,
    at_once: int = 2,
    table: str | None = None,
    **params: Any,
) -> LearnedPartitions:
    """Learn a layout for each of some partitions of a Delta table, several at once.

    Args:
        partitions: conditions on the partition columns, such as `["month = '2026-10'", "month = '2026-11'"]`; a month
            of daily partitions is one condition too. By default each partition of the table.
        at_once: learn so many at once. Spark's cores are shared, and each needs the driver's memory for its sample.
        learner, options, table, params: as for `learn`.
    """
    at_least_one("at_once", at_once)
    if options.storage > 1:
        raise HedgerowError("a Delta table has no replicas, so storage has to be 1")
    named = NamedLearner(learner, params)
    opened, queries, _ = opened_for(named, spark, source, workload, table)
    snapshot = opened.snapshot
    if snapshot is None:
        raise HedgerowError(f"only a Delta table has partitions that are laid out by themselves: {source} is none")
    files = files_of(snapshot, snapshot.partitions() if partitions is None else partitions)
    sizes = {where: sum(snapshot.files.sizes_of(names).values()) for where, names in files.items()}

    def learned(own: SparkSession, where: str) -> Learned:
        part = open_source(own, source, opened.name, snapshot.version).part(files[where])
        return learn_layout(part, queries, named, options)

    layouts: dict[str, Learned] = {}
    progress, time_left = Progress("learn"), TimeLeft(sum(sizes.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)  # `_warn` gives one warning for all partitions
        for where, result in each_at_once(spark, learned, list(files), at_once):
            if isinstance(result, HedgerowError):
                raise HedgerowError(f"no layout could be learned for {where}: {result}") from result
            layouts[where] = result
            progress.report(f"{where}, {len(layouts)} of {len(files)}{time_left.after(sizes[where])}")
    in_order = LearnedPartitions({where: layouts[where] for where in files})
    _warn(in_order)
    return in_order


def _warn(layouts: LearnedPartitions) -> None:
    """Warn of partitions in which little is to be gained, and of kinds of queries that get slower."""
    little = {where: layout.usual for where, layout in layouts.items() if not (layout.usual and layout.usual.pays)}
    why = [f"{where}: {usual or 'it is so small that Spark reads it in no time'}" for where, usual in little.items()]
    warn(f"little is to be gained in {len(little)} of {counted(len(layouts), 'partition')}", why)
    slower = [f"{where}: {kind}" for where, layout in layouts.items() for kind in layout.slower]
    warn("these layouts make some kinds of queries slower", slower)
