"""Brings what a table's index says of other tables' rows up to date."""

from __future__ import annotations

from dataclasses import replace

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.without_columns import mentions, with_columns, without_columns
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.parquet.write import commit
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.stored_joins import with_versions_of


def repaired(table: StoredParquet) -> StoredParquet:
    """Collects the statistics of joined rows again for all files, and commits them as a new state of the table."""
    joined = table.manifest.joined
    if not joined:
        return table
    table.joins.check(open_source(table.spark, table.frame(list(table.known.names)), joined[0].joined.steps[0].table))
    items, names = table.manifest.statistics, {j.name.lower() for j in joined}
    ours = [item for item in items if mentions(item, names)]
    with step(table.spark, "collecting statistics"), settings_as_written(table.spark, table.manifest.settings):
        check_settings(f"{table.path} cannot be repaired", table.manifest.settings, settings(table.spark))
        files = list(table.known.names)
        fresh = collect_files(table.frame(files), ours, table.schema, files, joins=table.joins)
    index = with_columns(without_columns(table.stored_index, items, names), fresh)
    number = table.manifest.number + 1
    manifest = replace(table.manifest, number=number, joined=with_versions_of(joined, table.joins))
    if not commit(table.spark, table.path, manifest, index, table.known):
        raise HedgerowError(f"{table.path} was changed meanwhile, so it is not repaired: try again")
    return StoredParquet.open(table.spark, table.path)
