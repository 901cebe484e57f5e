"""apply_tables: rewrites several tables in their layouts, each after those to which its foreign keys lead.

An index that describes joined rows holds for one version of the other table, so queries have to read that version. With
`both_directions` two tables describe each other, so the index of the first one is repaired when the second is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedgerow.core.errors import HedgerowError, LayoutError
from hedgerow.pipeline.apply import apply
from hedgerow.pipeline.inputs import tables_in
from hedgerow.pipeline.learned_tables import ONE_BLOCK, LearnedTables
from hedgerow.pipeline.write_options import WriteOptions
from hedgerow.spark.start.session import in_own_session
from hedgerow.spark.storage.folder import is_within
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.managed import ManagedTable
from hedgerow.tables.parquet.target import check_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@in_own_session
def apply_tables(
    spark: SparkSession,
    sources: str | Mapping[str, Any],
    layouts: LearnedTables,
    to: str | None = None,
    options: WriteOptions = WriteOptions(),
    *,
    overwrite: bool = False,
) -> dict[str, ManagedTable]:
    """Rewrite several tables: into folders of their names in `to`, or Delta tables in place.

    In place, a table whose layout has only one block stays as it is.

    Args:
        sources: the place of each table, by its name; or a directory with a folder for each, or a database.
        options, overwrite: as for `apply`, for each table.
    """
    if not isinstance(layouts, LearnedTables):
        raise LayoutError("this is the layout of one table: write it with apply")
    if options.sort_by is not None:
        raise LayoutError("sort_by is about one table: write it with apply")
    if isinstance(sources, str):
        present = tables_in(spark, sources)
        if not any(name in present for name in layouts):
            raise HedgerowError(f"{sources} has no folder or table for any of {', '.join(layouts)}")
        sources = {name: present[name] for name in layouts if name in present}
    missing = [name for name in sources if name not in layouts]
    if missing or not sources:
        raise HedgerowError(f"there is no layout of {', '.join(missing) or 'no table'}; there are {', '.join(layouts)}")
    places: dict[str, Any] = {**options.other_tables, **sources}
    if to is not None:
        _check_targets(spark, sources, to, options.other_tables, overwrite)
    tables = {}
    for name in layouts.in_order():
        if name not in sources or (to is None and layouts[name].layout == ONE_BLOCK):
            continue
        other_tables = {n: place for n, place in places.items() if isinstance(place, str)}
        own_options = replace(options, other_tables=other_tables)
        target = None if to is None else f"{to.rstrip('/')}/{name}"
        layout = replace(layouts[name], table=name)
        tables[name] = apply(spark, sources[name], layout, target, own_options, overwrite=overwrite)
        places[name] = tables[name].path
    for name, table in tables.items():
        later = {step.other for joined in layouts[name].joined for step in joined.steps if step.summaries}
        if not later.isdisjoint(tables):
            tables[name] = table.repair({other: tables[other].path for other in later if other in tables})
    return tables


def _check_targets(
    spark: SparkSession, sources: Mapping[str, Any], to: str, others: Mapping[str, str], overwrite: bool
) -> None:
    """HedgerowError, before anything is written, if one of the tables may not be written to its folder in `to`."""
    roots = {name: open_source(spark, place, name).roots for name, place in {**others, **sources}.items()}
    targets: dict[str, str] = {}
    for name in sources:
        other_roots = {n: own for n, own in roots.items() if n != name}
        target, _ = check_target(spark, f"{to.rstrip('/')}/{name}", overwrite, roots[name], other_roots)
        for earlier, place in targets.items():
            if is_within(target, place) or is_within(place, target):
                raise HedgerowError(f"{earlier} and {name} would lie in one place, for {to} holds a link")
        targets[name] = target
