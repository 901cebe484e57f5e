"""Collects statistics for the index again: of other expressions, or of joined rows that changed. No row moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.without_columns import only, with_columns, without_columns
from hedgerow.core.predicates.nodes import Feature, Predicate
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import Stats, concat, regroup
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.footers import known_terms
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.formats import Snapshot, schema_at
from hedgerow.tables.items_to_index import items_of_new_queries, without_words
from hedgerow.tables.known_files import file_names
from hedgerow.tables.part import Part, write_index
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.state import TableState, operation, update_state
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import open_joins, stale, to_store

ItemsOf = Callable[[Part, Joins], tuple[Sequence[Feature], set[str]]]


def repair(table: StoredTable) -> None:
    """Collect the statistics of joined rows again for the files that still exist."""

    def items_of(part: Part, joins: Joins) -> tuple[Sequence[Feature], set[str]]:
        return part.entry.statistics, {j.name.lower() for j in part.entry.joined}

    _describe(table, [part for part in table.parts if part.entry.joined], items_of, "repair")


def relearn(table: StoredTable, predicates: Sequence[Predicate], limit: int) -> None:
    """Collect the statistics that these queries use and the index does not have yet."""
    if any(part.stored_index.cells is not None for part in table.parts):
        raise HedgerowError(f"{table.path} keeps rows in several blocks, so its index stays as it is: apply again")

    def items_of(part: Part, joins: Joins) -> tuple[Sequence[Feature], set[str]]:
        entry = part.entry
        joined = [j.joined for j in entry.joined]
        known = part.stored_index.blocks
        items = items_of_new_queries(part.layout, predicates, known, entry.statistics, joined, limit)
        return items, stale(entry.joined, joins)

    _describe(table, table.parts, items_of, "relearn")


def _describe(table: StoredTable, parts: Sequence[Part], items_of: ItemsOf, verb: str) -> None:
    """Give each part an index of these items; what mentions a lost joined row is looked at again."""
    snapshot, side, kind = table.format.snapshot(), table.format.side, table.format.kind
    written = {o["part"]: o["version"] for o in table.state.operations if "part" in o and "version" in o}
    entries: dict[str, Entry] = {}
    for part in parts:
        joins = open_joins(table.spark, part.entry.joined)
        items, lost = items_of(part, joins)
        at = _as_written(table, written.get(part.entry.writes[-1][0])) or snapshot
        with step(table.spark, "collecting statistics"):
            index = _described(table, part, snapshot, at, joins, items, lost, verb)
        joined = to_store(joins, (*items, *part.layout.features))
        entries[part.id] = write_index(part, index, statistics=tuple(items), joined=joined)
    if not entries:
        return
    old = {part.id: part.entry.index for part in parts}

    def exchanged(state: TableState, number: int) -> TableState:
        if not old.items() <= {e.id: e.index for e in state.parts}.items():
            raise HedgerowError(f"the index of {table.path} was changed meanwhile, so it is not {verb}ed: try again")
        kept = tuple(entries.get(e.id, e) for e in state.parts)
        if snapshot.version is None:
            done = operation(verb, number, rows=total(kept).rows)
        else:
            done = operation(verb, snapshot.version)
        return replace(state, parts=kept, operations=(*state.operations, done))

    update_state(side, kind, exchanged)


def _as_written(table: StoredTable, version: int | None) -> Snapshot | None:
    """Return the table as it was when a part was written; None if that version is gone."""
    try:
        return None if version is None else table.format.snapshot(version)
    except HedgerowError:
        return None


def _described(
    table: StoredTable,
    part: Part,
    snapshot: Snapshot,
    at: Snapshot,
    joins: Joins,
    items: Sequence[Feature],
    lost: set[str],
    verb: str,
) -> BlockIndex:
    known, was = part.known, part.entry
    # Older versions of the table have rows that were deleted since, so files are read as they were written (`at`);
    # where that is not possible any more, files that lost rows stay unknown.
    places = [
        i
        for i, file in enumerate(known.sizes_by_name.items())
        if at.files.untouched(*file) and snapshot.files.place_of(*file) is not None
    ]
    if dict(at.columns) != was.columns:
        places = []  # a column of the same name may be another one now
    index = only(without_columns(part.stored_index, was.statistics, lost), items)
    searched = without_words(items, index.blocks)
    described = {*index.blocks.terms, *index.blocks.conditions} - searched
    missing = [item for item in items if feature_text(item) not in described]
    if not (places and missing):
        return index
    files = [known.names[i] for i in places]
    if was.joined:
        joins.check(open_source(table.spark, at.frame(), was.joined[0].joined.steps[0].table))
    with settings_as_written(table.spark, was.settings):
        check_settings(f"{table.path} cannot be {verb}ed", was.settings, settings(table.spark))
        sizes = {name: known.sizes_by_name[name] for name in files} if searched else {}
        told = known_terms(at.footers(sizes, searched, searched), schema_at(at), searched)
        fresh = collect_files(at.frame(files), missing, schema_at(at), file_names(files), told, joins)
    return with_columns(index, _spread(fresh, places, len(known)))


def _spread(stats: Stats, places: Sequence[int], size: int) -> Stats:
    """Return the statistics of some entries as those of all, where nothing is known of the rest."""
    rest = sorted(set(range(size)) - set(places))
    unknown = Stats(np.ones(len(rest), np.int64), {}, {})
    return regroup(concat([stats, unknown]) if rest else stats, [*places, *rest], size)
