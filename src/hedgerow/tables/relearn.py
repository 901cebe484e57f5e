"""Collects statistics for the index again: of other expressions, or of joined rows that changed. No row moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.sums import summable
from hedgerow.core.index.without_columns import only, with_columns, without_columns, without_functions
from hedgerow.core.predicates.nodes import Feature, Predicate
from hedgerow.core.predicates.sql_text import feature_text
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.combine_stats import concat, regroup
from hedgerow.spark.compute.collect_stats import Entries, RowGroups, collect_files
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.jvm_facts import settings
from hedgerow.spark.session_settings import changed_functions, with_stable
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.entry import Entry, total
from hedgerow.tables.formats import Snapshot, schema_at
from hedgerow.tables.items_to_index import items_of_new_queries, known_columns, without_words
from hedgerow.tables.known_files import file_names
from hedgerow.tables.lookups import Lookup, build_lookups, files_let_pass, same_columns
from hedgerow.tables.part import Part, write_index
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.state import TableState, operation, update_state
from hedgerow.tables.stored import StoredTable
from hedgerow.tables.stored_joins import open_joins, stale, to_store

ItemsOf = Callable[[Part, Joins], tuple[Sequence[Feature], set[str]]]


def repair(table: StoredTable, moved: Mapping[str, str] = MappingProxyType({})) -> None:
    """Collect the statistics of joined rows again for the files that still exist.

    `moved`: new places of other tables, by lower-case name."""

    def items_of(part: Part, joins: Joins) -> tuple[Sequence[Feature], set[str]]:
        return part.entry.statistics, {j.name.lower() for j in part.entry.joined}

    _describe(table, [part for part in table.parts if part.entry.joined], items_of, "repair", moved=moved)


def relearn(
    table: StoredTable,
    predicates: Sequence[Predicate],
    limit: int,
    summed: Sequence[str] = (),
    joined_by: Sequence[str] = (),
) -> None:
    """Collect the statistics that these queries use and the index does not have yet; `joined_by`: the keys of joins."""
    if any(part.stored_index.cells is not None for part in table.parts):
        raise HedgerowError(f"{table.path} keeps rows in several blocks, so its index stays as it is: apply again")

    def items_of(part: Part, joins: Joins) -> tuple[Sequence[Feature], set[str]]:
        entry, stats = part.entry, part.stored_index.blocks
        joined = [j.joined for j in entry.joined]
        sums = summable(summed, part.entry.schema)
        keys = known_columns(joined_by, part.entry.schema)
        items = items_of_new_queries(part.layout, predicates, stats, entry.statistics, joined, limit, sums, keys)
        return items, stale(entry.joined, joins)

    _describe(table, table.parts, items_of, "relearn", predicates)


def _describe(
    table: StoredTable,
    parts: Sequence[Part],
    items_of: ItemsOf,
    verb: str,
    predicates: Sequence[Predicate] = (),
    moved: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Give each part an index of these items; statistics of items with lost joined rows are collected again.

    Columns that the predicates look up get filters if they have none.

    `items_of`: returns the items for a part, and the names of joined rows whose statistics are lost."""
    snapshot, side, kind = table.format.snapshot(), table.format.side, table.format.kind
    done = table.state.all_operations(side)
    written = {o["part"]: o["version"] for o in done if "part" in o and "version" in o}
    entries: dict[str, Entry] = {}
    now = settings(table.spark)
    for part in parts:
        joins = open_joins(table.spark, part.entry.joined, moved)
        items, lost = items_of(part, joins)
        at = _as_written(table, written.get(part.entry.write)) or snapshot
        with step(table.spark, "collecting statistics"):
            index = _described(table, part, snapshot, at, joins, items, lost, verb, now)
        joined = to_store(joins, (*items, *part.layout.features))
        lookups = (*part.entry.lookups, *_new_lookups(table, part, snapshot, at, index, predicates))
        described = {"statistics": tuple(items), "joined": joined, "lookups": lookups}
        entries[part.id] = write_index(part, index, settings=with_stable(part.entry.settings, now), **described)
    if not entries:
        return
    old = {part.id: part.entry.index for part in parts}

    def exchanged(state: TableState, number: int) -> TableState:
        if not old.items() <= {e.id: e.index for e in state.parts}.items():
            raise HedgerowError(f"the index of {table.path} was changed meanwhile, so it is not {verb}ed: try again")
        changed = tuple(entries.get(e.id, e) for e in state.parts)
        if snapshot.version is None:
            done = operation(verb, number, rows=total(changed).rows)
        else:
            done = operation(verb, snapshot.version)
        return replace(state, parts=changed, operations=(*state.operations, done))

    update_state(side, kind, exchanged)


def _as_written(table: StoredTable, version: int | None) -> Snapshot | None:
    """Return the table as it was when a part was written; None if that version cannot be read any more."""
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
    now: Mapping[str, str],
) -> BlockIndex:
    """Return the index of a part with these items. `at`: the table as it was when the part was written, if possible."""
    files, entry = part.known, part.entry
    # A query of an older version also reads rows that were deleted since. So statistics come from the files as they
    # were written. If only a newer version can be read, files with deleted rows get no statistics.
    places = [
        i
        for i, file in enumerate(files.sizes_by_name.items())
        if at.files.untouched(*file) and snapshot.files.place_of(*file) is not None
    ]
    if dict(at.columns) != entry.columns:
        places = []  # a column of the same name may be another one now
    index = only(without_columns(part.stored_index, entry.statistics, lost), items)
    index = without_functions(index, changed_functions(entry.settings, with_stable(entry.settings, now)))
    searched = without_words(items, index.blocks)
    described = {*index.blocks.terms, *index.blocks.conditions} - searched
    missing = [item for item in items if feature_text(item) not in described]
    if not (places and missing):
        return index
    names = [files.names[i] for i in places]
    if entry.joined:
        joins.check(open_source(table.spark, at.frame(), entry.joined[0].joined.steps[0].table))
    with settings_as_written(table.spark, entry.settings):
        check_settings(f"{table.path} cannot be {verb}ed", entry.settings, settings(table.spark))
        sizes = {files.names[i]: int(files.sizes[i]) for i in places} if searched else {}
        groups = RowGroups.of_index(part.stored_index.take(np.array(places)))
        footers = at.footers(sizes, searched, searched, by_group=groups is not None)
        of_footers, entries = footers.known_terms(schema_at(at)), Entries(file_names(names), groups)
        fresh = collect_files(at.frame(names), missing, schema_at(at), entries, of_footers, joins)
    return with_columns(index, _spread(fresh, places, index))


def _new_lookups(
    table: StoredTable, part: Part, snapshot: Snapshot, at: Snapshot, index: BlockIndex, predicates: Sequence[Predicate]
) -> tuple[Lookup, ...]:
    """Build the filters that a part lacks; none if some of its files cannot be read as they were written."""
    wanted = files_let_pass(predicates, index.finest, part.entry.schema)
    for column in same_columns(part.entry.lookups):
        wanted.pop(column, None)
    files = part.known.sizes_by_name
    are_there = all(at.files.untouched(*f) and snapshot.files.place_of(*f) is not None for f in files.items())
    if not (
        wanted and are_there and dict(at.columns) == part.entry.columns and part.reads_alike(settings(table.spark))
    ):
        return ()
    schema, share = part.entry.schema, part.entry.writing.lookup_share
    return build_lookups(table.format.side, at.frame(list(files)), part.known, index, schema, wanted, share)


def _spread(fresh: BlockIndex, places: Sequence[int], old: BlockIndex) -> BlockIndex:
    """Return the index of the blocks at these places as one of all blocks of another; the others are unknown."""
    blocks = _spread_stats(fresh.blocks, places, len(old.blocks))
    if old.groups is None or fresh.groups is None:
        return BlockIndex(blocks)
    at = np.flatnonzero(np.isin(old.groups.block, places)).tolist()
    stats = _spread_stats(fresh.groups.stats, at, len(old.groups.block))
    return BlockIndex(blocks, groups=replace(old.groups, stats=stats))


def _spread_stats(stats: Stats, places: Sequence[int], size: int) -> Stats:
    rest = sorted(set(range(size)) - set(places))
    unknown = Stats(np.ones(len(rest), np.int64), {}, {})
    return regroup(concat([stats, unknown]) if rest else stats, [*places, *rest], size)
