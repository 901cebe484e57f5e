"""apply_partitions: rewrites some partitions of a Delta table in place, each in a layout of its own, several at once.

Each partition is a transaction. A run that ends early has rewritten some of them, and the same call goes on with the
others. One rollback takes back all that one call rewrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from hedgerow.core.errors import HedgerowError, LayoutError, counted
from hedgerow.core.progress import Progress
from hedgerow.core.time_left import TimeLeft
from hedgerow.pipeline.apply import apply_of_batch
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learned_partitions import LearnedPartitions, files_of
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.start.at_once import each_at_once
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.delta_log import delta_log, is_delta
from hedgerow.tables.delta.rewrite import cover_queried
from hedgerow.tables.managed import ManagedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@in_own_session
def apply_partitions(
    spark: SparkSession,
    source: str,
    layouts: LearnedPartitions,
    options: WriteOptions = WriteOptions(),
    *,
    at_once: int = 2,
) -> ManagedTable:
    """Rewrite some partitions of a Delta table in place, each in its own layout, several at once.

    Partitions whose files are all in their layout already are left as they are. One rollback takes back the others.
    A call that goes on after a failure has a rollback of its own.

    Args:
        at_once: rewrite so many at once. Each needs temporary space for its rows.
        options: as for `apply`.
    """
    at_least_one("at_once", at_once)
    if not isinstance(layouts, LearnedPartitions):
        raise LayoutError("this is not a layout for each of some partitions: write it with apply")
    if not is_delta(spark, source):
        raise HedgerowError(f"only a Delta table is rewritten in place: {source} is none")
    snapshot = delta_log(spark, source).snapshot()
    files = files_of(snapshot, list(layouts))
    done = _laid_out(spark, source, layouts, files)
    left = {where: sum(snapshot.files.sizes_of(names).values()) for where, names in files.items() if where not in done}
    # The table's properties change once, before all rewrites: a later change would make running ones fail.
    cover_queried(snapshot, [p for learned in layouts.values() for p in learned.predicates])
    progress, time_left = Progress("apply"), TimeLeft(sum(left.values()))
    if done:
        progress.report(f"{counted(len(done), 'partition')} of {len(layouts)} are in their layouts already")

    batch = uuid4().hex[:12]

    def write(own: SparkSession, where: str) -> ManagedTable:
        return apply_of_batch(own, source, layouts[where], options, where, batch)

    failed: dict[str, HedgerowError] = {}
    for count, (where, result) in enumerate(each_at_once(spark, write, list(left), at_once), len(done) + 1):
        remaining = time_left.after(left[where])
        if isinstance(result, HedgerowError):
            failed[where] = result
        else:
            progress.report(f"{where} is committed, {count} of {len(layouts)}{remaining}")
    if failed:
        where, error = next(iter(failed.items()))
        raise HedgerowError(
            f"{counted(len(failed), 'partition')} of {len(layouts)} failed, and the others are committed; the same "
            f"call goes on with those that are left: {where}: {error}"
        ) from error
    return ManagedTable.open(spark, source)


def _laid_out(spark: SparkSession, source: str, layouts: LearnedPartitions, files: dict[str, list[str]]) -> list[str]:
    """Return the conditions whose files are all in their layout."""
    try:
        parts = ManagedTable.open(spark, source).parts
    except HedgerowError:  # the table is not managed yet
        return []
    done = []
    for where, names in files.items():
        own = {name for part in parts if part.layout == layouts[where].layout for name in part.known.names}
        if own.issuperset(names):
            done.append(where)
    return done
