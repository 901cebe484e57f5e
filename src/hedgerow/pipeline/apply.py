"""apply: rewrites a table in a layout, one file per block, with an index."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, overload

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.core.layouts.base import Layout
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.pipeline.inputs import at_least_one
from hedgerow.pipeline.learned import Learned
from hedgerow.pipeline.several_tables import WHOLE, LearnedTables, check_targets, tables_in
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.rule import state_of
from hedgerow.spark.start.session import in_own_session, is_remote
from hedgerow.spark.storage.delta_log import is_delta
from hedgerow.spark.storage.source import Source, open_source
from hedgerow.spark.write.writing import Writing
from hedgerow.tables.base import LacksCapability, Table
from hedgerow.tables.delta.rewrite import Plan, rewrite
from hedgerow.tables.delta.table import DeltaTable
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS, items_to_index
from hedgerow.tables.parquet.replicas import replica_path
from hedgerow.tables.parquet.table import ParquetTable
from hedgerow.tables.parquet.write import create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@overload
def apply(
    spark: SparkSession, source: str | Mapping[str, Any], layout: LearnedTables, *args: Any, **options: Any
) -> dict[str, Table]: ...
@overload
def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame,
    layout: Layout | Learned,
    *args: Any,
    **options: Any,
) -> Table: ...
@in_own_session
def apply(
    spark: SparkSession,
    source: str | Sequence[str] | DataFrame | Mapping[str, Any],
    layout: Layout | Learned | LearnedTables,
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
    others: Mapping[str, str] | None = None,
) -> Table | dict[str, Table]:
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
        others: where the tables are to which the layout's foreign keys lead, by name.

    Several tables, by name or in one place as they were learned, are written to folders of their names in `to`; or in
    place, but for those of one block.
    """
    if isinstance(layout, LearnedTables) and isinstance(source, str):
        found = tables_in(spark, source)
        if not any(name in found for name in layout):
            raise HedgerowError(f"{source} has no folder or table for any of {', '.join(layout)}")
        source = {name: found[name] for name in layout if name in found}
    if isinstance(layout, LearnedTables) or isinstance(source, Mapping):
        if not (isinstance(layout, LearnedTables) and isinstance(source, Mapping)):
            raise HedgerowError("several tables need the layouts of several tables, and the other way round")
        if where is not None or sort_by is not None or replica is not None or table is not None:
            raise HedgerowError("where=, sort_by=, replica= and table= are of one table: apply its layout by itself")
        return _applied(
            spark,
            source,
            layout,
            to,
            retries=retries,
            overwrite=overwrite,
            max_block_rows=max_block_rows,
            options=options,
            statistics=statistics,
            others=others or {},
        )
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
    state = learned.provenance.get("only_for")
    if state is not None and not is_remote(spark) and state != state_of(opened):
        raise HedgerowError(f"{opened.origin} has changed since this plan was made: advise again")
    if statistics < 0:
        raise LayoutError(f"statistics has to be at least 0, not {statistics}")
    by_key = sort_by is None
    if sort_by is None:
        sort_by = [learned.sort_by] if learned.sort_by in opened.schema else []
    joins = _joins(spark, learned, opened, others or {})
    provenance = {
        **learned.provenance,
        "source": opened.origin,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"hedgerow": version("hedgerow"), "spark": spark.version, "python": platform.python_version()},
    }
    described = items_to_index(learned.layout, learned.predicates, learned.noted, learned.joined, statistics)
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
            joins=joins,
        )
        return ParquetTable.open(spark, place.rstrip("/") if copy_of is None else copy_of.path)
    if not isinstance(source, str) or not is_delta(spark, source):
        raise HedgerowError(f"only a Delta table is rewritten in place: name a place for {opened.origin} with to=")
    if isinstance(learned.layout, OverlapLayout):
        raise LacksCapability("overlap", opened.origin)
    plan = Plan(learned.layout, opened.name, learned.predicates, described, provenance, how, joins, where)
    rewrite(spark, source, plan, retries)
    return DeltaTable.open(spark, source)


def _applied(
    spark: SparkSession,
    sources: Mapping[str, Any],
    learned: LearnedTables,
    to: str | None,
    others: Mapping[str, str],
    **options: Any,
) -> dict[str, Table]:
    """Writes several tables, each after those to which its foreign keys lead."""
    missing = [name for name in sources if name not in learned]
    if missing or not sources:
        raise HedgerowError(f"there is no layout of {', '.join(missing) or 'no table'}; there are {', '.join(learned)}")
    places: dict[str, Any] = {**others, **sources}
    if to is not None:
        check_targets(spark, sources, to, others, bool(options["overwrite"]))
    tables = {}
    for name in learned.in_order():
        if name not in sources:
            continue
        if to is None and learned[name].layout == WHOLE:
            continue  # a table that stays as it is
        tables[name] = apply(
            spark,
            sources[name],
            learned[name],
            None if to is None else f"{to.rstrip('/')}/{name}",
            table=name,
            others={other: place for other, place in places.items() if isinstance(place, str)},
            **options,
        )
        places[name] = tables[name].path
    return tables


def _joins(spark: SparkSession, learned: Learned, source: Source, others: Mapping[str, str]) -> Joins:
    """The joined rows that the layout speaks of; HedgerowError if a table is missing or a key does not fit."""
    places = {name.lower(): place for name, place in others.items()}
    names = dict.fromkeys(step.other for joined in learned.joined for step in joined.steps)
    missing = [name for name in names if name.lower() not in places]
    if missing:
        raise HedgerowError(
            f"the layout of {learned.table} looks at {missing[0]}: apply them together, or name its place with others="
        )
    joins = Joins(learned.joined, {name.lower(): open_source(spark, places[name.lower()], name) for name in names})
    joins.check(replace(source, name=learned.table or source.name))
    return joins
