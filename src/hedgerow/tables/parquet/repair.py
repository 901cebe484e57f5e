"""Lets a table's index describe other things, or the same again after other tables changed; no row moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.without_columns import only, with_columns, without_columns
from hedgerow.core.predicates.nodes import Feature, Predicate
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.folder import Folder
from hedgerow.spark.storage.footers import footers_of, known_terms
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.items_to_index import items_of_new_queries, without_words
from hedgerow.tables.parquet.stored import StoredParquet
from hedgerow.tables.parquet.write import commit
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.stored_joins import stale, to_store


def repaired(table: StoredParquet) -> StoredParquet:
    """Collects the statistics of joined rows again for all files, and commits them as a new state of the table."""
    joined = table.manifest.joined
    if not joined:
        return table
    return _described(table, table.manifest.statistics, {j.name.lower() for j in joined}, "repair")


def relearned(table: StoredParquet, predicates: Sequence[Predicate], limit: int) -> StoredParquet:
    """Collects what these queries ask for and the index does not describe yet."""
    if table.stored_index.cells is not None:
        raise HedgerowError(f"{table.path} keeps rows in several blocks, so its index stays as it is: apply again")
    known, was = table.stored_index.blocks, table.manifest
    joined = [j.joined for j in was.joined]
    items = items_of_new_queries(table.layout, predicates, known, was.statistics, joined, limit)
    return _described(table, items, stale(was.joined, table.joins), "relearn")


def _described(table: StoredParquet, items: Sequence[Feature], lost: Collection[str], operation: str) -> StoredParquet:
    """Commits an index of these items; all that mention a lost joined row are looked at again."""
    failed = "repaired" if operation == "repair" else "relearned"
    joins, files, present = table.joins, list(table.known.names), table.present()
    gone = [name for name, size in table.known.sizes_by_name.items() if present.get(name) != size]
    if gone:
        raise HedgerowError(f"{table.path} cannot be {failed}: the file {gone[0]} is gone, or others changed it")
    if table.manifest.joined:
        first = table.manifest.joined[0].joined.steps[0].table
        joins.check(open_source(table.spark, table.frame(files), first))
    index = only(without_columns(table.stored_index, table.manifest.statistics, lost), items)
    searched = without_words(items, index.blocks)
    known = {*index.blocks.terms, *index.blocks.conditions} - searched
    with step(table.spark, "collecting statistics"), settings_as_written(table.spark, table.manifest.settings):
        check_settings(f"{table.path} cannot be {failed}", table.manifest.settings, settings(table.spark))
        missing = [item for item in items if feature_text(item) not in known]
        if missing:
            sizes = table.known.sizes_by_name if searched else {}
            footers = footers_of(Folder(table.spark, table.path), sizes, searched, searched)
            told = known_terms(footers, table.schema, searched)
            fresh = collect_files(table.frame(files), missing, table.schema, files, told, joins)
            index = with_columns(index, fresh)
    manifest = replace(
        table.manifest,
        number=table.manifest.number + 1,
        statistics=tuple(items),
        joined=to_store(joins, (*items, *table.layout.features)),
        operation=operation,
    )
    if not commit(table.spark, table.path, manifest, index, table.known, after=table.manifest):
        raise HedgerowError(f"{table.path} was changed meanwhile, so it is not {failed}: try again")
    return StoredParquet.open(table.spark, table.path)
