"""apply: rewrites a table in a layout, one file per block, with an index."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.pipeline.learned import Learned
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.delta_log import is_delta
from hedgerow.spark.storage.source import open_source
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.base import LacksCapability, Table
from hedgerow.tables.delta.rewrite import Plan, rewrite
from hedgerow.tables.delta.table import DeltaTable
from hedgerow.tables.parquet.replicas import replica_path
from hedgerow.tables.parquet.table import ParquetTable
from hedgerow.tables.parquet.write import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@in_own_session
def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    layout: Layout | Learned,
    to: str | None = None,
    *,
    where: str | Sequence[str] | None = None,
    retries: int = 0,
    overwrite: bool = False,
    max_block_rows: int | None = None,
    sort_by: Sequence[str] | None = None,
    options: Mapping[str, str] | None = None,
    table: str | None = None,
    replica: str | None = None,
    statistics: int = MAX_DESCRIBED_ITEMS,
) -> Table:
    """Rewrite the table, one file per block, with an index over them: into a new directory, or a Delta table in place.

    Args:
        to: the directory; without it the source has to be a Delta table. With `replica`, the table that gets one.
        replica: the name of a full copy of the table at `to` in this layout, which lies inside of that table.
        where: in place, rewrite only some files: a condition on the partition columns, or the files' names.
        retries: in place, how often to start again when others changed those files meanwhile.
        overwrite: replace what is at `to`; without it an existing, non-empty target is refused.
        max_block_rows: a block with more rows is written as several files.
        sort_by: the order of rows inside a file, `()` for none; by default that of the curve where the layout follows
            one, and the column that `learn` found best.
        options: for Spark's Parquet writer, such as `{"compression": "zstd"}`.
        statistics: how many expressions (their bounds) and conditions (their outcomes) the index holds beside plain
            columns: first the layout's own, then those that occur in most queries.
    """
    copy_of, place = None, to
    if replica is not None:
        if to is None:
            raise HedgerowError("a replica belongs to a table that Hedgerow wrote: name that table with to=")
        if is_delta(spark, to):
            raise LacksCapability("replicas", to)
        copy_of = ParquetTable.open(spark, to.rstrip("/"))
        place = replica_path(copy_of.path, replica)
    learned = layout if isinstance(layout, Learned) else Learned(layout, "")
    opened = open_source(spark, source, table or learned.table or None)
    if statistics < 0:
        raise LayoutError(f"statistics has to be at least 0, not {statistics}")
    by_key = sort_by is None
    if sort_by is None:
        sort_by = [learned.sort_by] if learned.sort_by in opened.schema else []
    provenance = {
        **learned.provenance,
        "source": opened.origin,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"hedgerow": version("hedgerow"), "spark": spark.version, "python": platform.python_version()},
    }
    described = items_to_index(learned, statistics)
    how = Writing(at_least_one("max_block_rows", max_block_rows), tuple(sort_by), by_key, dict(options or {}))
    if place is not None:
        if where is not None:
            raise LacksCapability("rewrite of a part", place)
        create(
            opened,
            learned.layout,
            place,
            items=described,
            provenance=provenance,
            how=how,
            overwrite=overwrite,
            copy_of=copy_of,
        )
        return ParquetTable.open(spark, place.rstrip("/") if copy_of is None else copy_of.path)
    if not isinstance(source, str) or not is_delta(spark, source):
        raise HedgerowError(f"only a Delta table is rewritten in place: name a place for {opened.origin} with to=")
    if isinstance(learned.layout, OverlapLayout):
        raise LacksCapability("overlap", opened.origin)
    plan = Plan(learned.layout, opened.name, learned.predicates, described, provenance, how, where)
    rewrite(spark, source, plan, retries)
    return DeltaTable.open(spark, source)
