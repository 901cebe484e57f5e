"""Lets the index of a Delta table describe other things, or the same again after other tables changed; the table itself
stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.without_columns import only, with_columns, without_columns
from hedgerow.core.layouts.base import sql_of
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import Stats, concat, regroup
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.compute.evaluate import Item
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot
from hedgerow.spark.storage.footers import known_terms
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.delta.segment_list import SegmentEntry, SegmentList
from hedgerow.tables.delta.segments import Segment, operation, update_list, write_segment
from hedgerow.tables.delta.snapshot_files import file_names, footers_at, schema_at
from hedgerow.tables.items_to_index import items_of_new_queries, without_words
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.stored_joins import opened, stale, to_store


def repair(log: DeltaLog, segments: Sequence[Segment], written: Mapping[str, int]) -> None:
    """Collects the statistics of joined rows again for the files that still exist.

    `written`: the versions of the table that the segments were written in, by their ids."""

    def items_of(segment: Segment, joins: Joins) -> tuple[Sequence[Item], set[str]]:
        return segment.entry.statistics, {j.name.lower() for j in segment.entry.joined}

    _describe(log, [segment for segment in segments if segment.entry.joined], written, items_of, "repair")


def relearn(
    log: DeltaLog, segments: Sequence[Segment], written: Mapping[str, int], predicates: Sequence[Predicate], limit: int
) -> None:
    """Collects what these queries ask for and the index does not describe yet."""

    def items_of(segment: Segment, joins: Joins) -> tuple[Sequence[Item], set[str]]:
        entry = segment.entry
        joined = [j.joined for j in entry.joined]
        known, described = segment.stored.blocks, entry.statistics
        items = items_of_new_queries(segment.layout, predicates, known, described, joined, limit)
        return items, stale(entry.joined, joins)

    _describe(log, segments, written, items_of, "relearn")


def _describe(
    log: DeltaLog,
    segments: Sequence[Segment],
    written: Mapping[str, int],
    items_of: Callable[[Segment, Joins], tuple[Sequence[Item], set[str]]],
    verb: str,
) -> None:
    """Exchanges each segment by one that describes these items; what mentions a lost joined row is looked at again."""
    snapshot = log.snapshot()
    for segment in segments:
        joins = opened(log.spark, segment.entry.joined)
        items, lost = items_of(segment, joins)
        with step(log.spark, "collecting statistics"):
            at = _as_written(log, written.get(segment.id)) or snapshot
            entry = _described(log, segment, snapshot, at, joins, items, lost, verb)
        update_list(log, partial(_exchanged, log.path, verb, segment.id, entry))
    if segments:
        done = operation(verb, snapshot.version, None)
        update_list(log, lambda listed: replace(listed, operations=(*listed.operations, done)))


def _as_written(log: DeltaLog, version: int | None) -> Snapshot | None:
    """The table when a segment was written; None if that version is gone."""
    try:
        return None if version is None else log.snapshot(version)
    except HedgerowError:
        return None


def _described(
    log: DeltaLog,
    segment: Segment,
    snapshot: Snapshot,
    at: Snapshot,
    joins: Joins,
    items: Sequence[Item],
    lost: set[str],
    verb: str,
) -> SegmentEntry:
    known, was = segment.known, segment.entry
    # Older versions of the table have rows that were deleted since, so files are read as they were written (`at`);
    # where that is not possible any more, files that lost rows stay unknown.
    places = [
        i
        for i, (name, size) in enumerate(known.sizes_by_name.items())
        if at.files.untouched(name, size) and snapshot.files.place_of(name, size) is not None
    ]
    if dict(at.columns) != dict(was.columns):
        places = []  # a column of the same name may be another one now
    index = only(without_columns(segment.stored, was.statistics, lost), items)
    searched = without_words(items, index.blocks)
    described = {*index.blocks.terms, *index.blocks.conditions} - searched
    missing = [item for item in items if sql_of(item) not in described]
    if places and missing:
        files = [known.names[i] for i in places]
        if was.joined:
            joins.check(open_source(log.spark, at.frame(), was.joined[0].joined.steps[0].table))
        with settings_as_written(log.spark, was.settings):
            check_settings(f"{log.path} cannot be {verb}ed", was.settings, settings(log.spark))
            sizes = {name: known.sizes_by_name[name] for name in files} if searched else {}
            footers = footers_at(at, sizes, searched, searched)
            told = known_terms(footers, schema_at(at), searched)
            fresh = collect_files(at.frame(files), missing, schema_at(at), file_names(files), told, joins)
        index = with_columns(index, _spread(fresh, places, len(known)))
    joined = to_store(joins, (*items, *segment.layout.features))
    return write_segment(log, replace(was, statistics=tuple(items), joined=joined), None, index.blocks, known)


def _spread(stats: Stats, places: Sequence[int], size: int) -> Stats:
    """The statistics of some entries as those of all, where nothing is known of the rest."""
    rest = sorted(set(range(size)) - set(places))
    unknown = Stats(np.ones(len(rest), np.int64), {}, {})
    return regroup(concat([stats, unknown]) if rest else stats, [*places, *rest], size)


def _exchanged(path: str, verb: str, old: str, new: SegmentEntry, listed: SegmentList) -> SegmentList:
    """The list with the entry in the place of the old one; HedgerowError if another process took that out."""
    if all(entry.id != old for entry in listed.segments):
        raise HedgerowError(f"the index of {path} was changed meanwhile, so it is not {verb}ed: try again")
    segments = tuple(new if entry.id == old else entry for entry in listed.segments)
    done = tuple({**o, "segment": new.id} if o.get("segment") == old else o for o in listed.operations)
    return replace(listed, segments=segments, operations=done)
