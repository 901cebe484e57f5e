"""Brings what the index of a Delta table says of other tables' rows up to date; the table itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.core.errors import HedgerowError
from hedgerow.core.index.without_columns import mentions, with_columns, without_columns
from hedgerow.core.pruning.block_stats import Stats, concat, regroup
from hedgerow.spark.compute.collect_stats import collect_files
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot
from hedgerow.spark.storage.source import open_source
from hedgerow.tables.delta.segment_list import SegmentEntry, SegmentList
from hedgerow.tables.delta.segments import Segment, update_list, write_segment
from hedgerow.tables.delta.snapshot_files import file_names, schema_at
from hedgerow.tables.settings_fit import check_settings, settings_as_written
from hedgerow.tables.stored_joins import opened, with_versions_of


def repair(log: DeltaLog, segments: Sequence[Segment], written: Mapping[str, int]) -> None:
    """Collects the statistics of joined rows again for the files that still exist.

    `written`: the versions of the table that the segments were written in, by their ids."""
    snapshot = log.snapshot()
    for segment in segments:
        if segment.entry.joined:
            with step(log.spark, "collecting statistics"):
                entry = _repaired(log, segment, snapshot, _as_written(log, written.get(segment.id)))
            update_list(log, lambda listed, old=segment.id, new=entry: _exchanged(listed, old, new))  # type: ignore[misc]


def _as_written(log: DeltaLog, version: int | None) -> Snapshot | None:
    """The table when a segment was written; None if that version is gone."""
    try:
        return None if version is None else log.snapshot(version)
    except HedgerowError:
        return None


def _repaired(log: DeltaLog, segment: Segment, snapshot: Snapshot, written: Snapshot | None) -> SegmentEntry:
    joins, items = opened(log.spark, segment.entry.joined), segment.entry.statistics
    names = {j.name.lower() for j in segment.entry.joined}
    ours = [item for item in items if mentions(item, names)]
    known = segment.known
    # Older versions of the table have rows that were deleted since, so files are read as they were written; where that
    # is not possible any more, files that lost rows stay unknown.
    at = written or snapshot
    places = [
        i
        for i, (name, size) in enumerate(known.sizes_by_name.items())
        if at.files.untouched(name, size) and snapshot.files.place_of(name, size) is not None
    ]
    if dict(at.columns) != dict(segment.entry.columns):
        places = []  # a column of the same name may be another one now
    index = without_columns(segment.stored, items, names)
    if places:
        files = [known.names[i] for i in places]
        joins.check(open_source(log.spark, at.frame(), segment.entry.joined[0].joined.steps[0].table))
        with settings_as_written(log.spark, segment.entry.settings):
            check_settings(f"{log.path} cannot be repaired", segment.entry.settings, settings(log.spark))
            fresh = collect_files(at.frame(files), ours, schema_at(at), file_names(files), joins=joins)
        index = with_columns(index, _spread(fresh, places, len(known)))
    entry = replace(segment.entry, joined=with_versions_of(segment.entry.joined, joins))
    return write_segment(log, entry, None, index.blocks, known)


def _spread(stats: Stats, places: Sequence[int], size: int) -> Stats:
    """The statistics of some entries as those of all, where nothing is known of the rest."""
    rest = sorted(set(range(size)) - set(places))
    unknown = Stats(np.ones(len(rest), np.int64), {}, {})
    return regroup(concat([stats, unknown]) if rest else stats, [*places, *rest], size)


def _exchanged(listed: SegmentList, old: str, new: SegmentEntry) -> SegmentList:
    """The list with the entry in the place of the old one, if that is still there."""
    segments = tuple(new if entry.id == old else entry for entry in listed.segments)
    done = tuple({**o, "segment": new.id} if o.get("segment") == old else o for o in listed.operations)
    return replace(listed, segments=segments, operations=done)
