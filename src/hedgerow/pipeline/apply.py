"""apply: rewrites a table in a layout, with an index."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from math import ceil
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.pipeline.inputs import bytes_of
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.learned_partitions import LearnedPartitions
from hedgerow.pipeline.learned_tables import LearnedTables
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.delta_log import is_delta
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.delta.rewrite import rewrite
from hedgerow.tables.formats import LacksCapability
from hedgerow.tables.items_to_index import items_to_index
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet.replicas import replica_path
from hedgerow.tables.parquet.write import create
from hedgerow.tables.rewrite_plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAST_GROUP_ROWS = 20_000  # of a row group: each one read takes a millisecond


@in_own_session
def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    layout: Layout | Learned,
    to: str | None = None,
    options: WriteOptions = WriteOptions(),
    *,
    where: str | Sequence[str] | None = None,
    replica: str | None = None,
    overwrite: bool = False,
) -> ManagedTable:
    """Rewrite the table, one file per block, with an index over them: into a new directory, or a Delta table in place.

    Args:
        layout: with replicas, as `learn(trees=2)` makes it, these are written beside the table as `tree-2` and so on.
        to: the directory; without it the source has to be a Delta table. With `replica`, the table that gets one.
        options: the order of rows and the size of the index, among others; see `WriteOptions`.
        where: in place, rewrite only some files: a condition on the partition columns, or the files' names.
        replica: the name of a full copy of the table at `to` in this layout, which lies inside of that table.
        overwrite: replace the table at `to`; without it an existing, non-empty target is refused.
    """
    if isinstance(layout, LearnedTables):
        raise LayoutError("these are the layouts of several tables: write them with apply_tables")
    if isinstance(layout, LearnedPartitions):
        raise LayoutError("these are the layouts of several partitions: write them with apply_partitions")
    learned = layout if isinstance(layout, Learned) else Learned(layout, "")
    if learned.replicas and replica is not None:
        raise LayoutError("these layouts make a table and its replicas: name a new place with to=, and no replica=")
    copied = _table_to_copy(spark, to) if replica is not None else None
    opened = open_source(spark, source, learned.table or None)
    if to is None:
        if not isinstance(source, str) or not is_delta(spark, source):
            raise HedgerowError(f"only a Delta table is rewritten in place: name a place for {opened.origin} with to=")
        return _apply_in_place(opened, source, learned, options, where)
    plan = _plan(spark, opened, learned, options)
    place = to if copied is None or replica is None else replica_path(copied.path, replica)
    if where is not None:
        raise LacksCapability("rewrite of a part", place)
    create(opened, plan, place, overwrite, None if copied is None else copied.state)
    for number, copy in enumerate(learned.replicas, 2):
        apply(spark, place, copy, place, options, replica=f"tree-{number}")
    return ManagedTable.open(spark, place if copied is None else copied.path)


@in_own_session
def apply_of_batch(
    spark: SparkSession,
    source: str,
    learned: Learned,
    options: WriteOptions,
    where: str,
    batch: str,
) -> ManagedTable:
    """Rewrite some partitions of a Delta table in place. `batch`: see `Plan`."""
    return _apply_in_place(open_source(spark, source, learned.table or None), source, learned, options, where, batch)


def _apply_in_place(
    opened: Source,
    source: str,
    learned: Learned,
    options: WriteOptions,
    where: str | Sequence[str] | None,
    batch: str | None = None,
) -> ManagedTable:
    spark = opened.frame.sparkSession
    if isinstance(learned.layout, OverlapLayout):
        raise LacksCapability("overlap", opened.origin)
    if learned.replicas:
        raise LacksCapability("replicas", opened.origin)
    plan = replace(_plan(spark, opened, learned, options), where=where, batch=batch)
    rewrite(spark, source, plan, options.retries)
    return ManagedTable.open(spark, source)


def _table_to_copy(spark: SparkSession, to: str | None) -> ManagedTable:
    """Return the table that gets a replica; HedgerowError if it cannot have one."""
    if to is None:
        raise HedgerowError("a replica belongs to a table that Hedgerow wrote: name that table with to=")
    if is_delta(spark, to):
        raise LacksCapability("replicas", to)
    return ManagedTable.open(spark, to)


def _plan(spark: SparkSession, opened: Source, learned: Learned, options: WriteOptions) -> Plan:
    sort_by = options.sort_by
    if sort_by is None:
        sort_by = [learned.sort_by] if learned.sort_by in opened.schema else []
    blocks_per_file = _blocks_per_file(opened, learned.layout, options)
    writing = Writing(
        options.max_block_rows,
        blocks_per_file,
        max(_LEAST_GROUP_ROWS, opened.rows // learned.blocks // 2) if blocks_per_file > 1 else 0,
        tuple(sort_by),
        options.sort_by is None,
        dict(options.parquet),
        options.lookup_share,
        options.file_bytes,
    )
    summed, limit = learned.summed, options.statistics
    items = items_to_index(
        learned.layout, learned.predicates, learned.noted, learned.joined, limit, summed, learned.described
    )
    joins = _joins(spark, learned, opened, options)
    origin = {
        **learned.provenance,
        "source": opened.origin,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"hedgerow": version("hedgerow"), "spark": spark.version, "python": platform.python_version()},
    }
    most = bytes_of(options.wave_bytes, "wave")
    return Plan(learned.layout, opened.name, learned.predicates, items, origin, writing, joins, wave_bytes=most)


def _blocks_per_file(source: Source, layout: Layout, options: WriteOptions) -> int:
    """Return how many blocks fit into a file of the wanted size; a block has a file in each wave."""
    if options.file_bytes is None:
        return 1
    if isinstance(layout, OverlapLayout):
        raise LayoutError("a layout with overlap has a file for each block, so file_bytes has to be None")
    waves = max(1, ceil(source.size / bytes_of(options.wave_bytes, "wave")))
    in_a_file = source.size / layout.blocks / waves
    return max(1, min(layout.blocks, round(bytes_of(options.file_bytes, "file") / max(1.0, in_a_file))))


def _joins(spark: SparkSession, learned: Learned, source: Source, options: WriteOptions) -> Joins:
    """Return the joined rows that the layout needs; HedgerowError if a table is missing or a key does not fit."""
    places = {name.lower(): place for name, place in options.other_tables.items()}
    names = dict.fromkeys(step.other for joined in learned.joined for step in joined.steps)
    missing = [name for name in names if name.lower() not in places]
    if missing:
        raise HedgerowError(
            f"the layout of {learned.table} depends on {missing[0]}: write both with apply_tables, or name its place "
            "with options=WriteOptions(other_tables=...)"
        )
    joins = Joins(learned.joined, {name.lower(): open_source(spark, places[name.lower()], name) for name in names})
    joins.check(replace(source, name=learned.table or source.name))
    return joins
