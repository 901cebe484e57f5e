"""A managed Delta table: Delta keeps the table, and `_hedgerow/` in it describes what some files cannot contain.

    orders/  _delta_log/ ...   the list of files in each version
             part-00000-....   written by us or by others
             _hedgerow/        see `tables/delta/segments`; Delta neither reads nor vacuums it

The list of files always comes from the snapshot that is read. Files that no segment describes are always read.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import HedgerowError, warn
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.reasons import untold
from hedgerow.core.index.without_columns import mentions, without_columns
from hedgerow.core.layouts.base import Layout, sql_of
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import quote_name
from hedgerow.core.pruning.block_stats import Stats, agree, repeat
from hedgerow.core.workload.columns_read import read_columns
from hedgerow.core.workload.queries import Query, Workload
from hedgerow.core.workload.score import QueryScore, Score
from hedgerow.spark.compute.checksum import checksum
from hedgerow.spark.compute.collect_stats import collect_files, with_words
from hedgerow.spark.compute.joins import Joins
from hedgerow.spark.optimizer.attach import routed
from hedgerow.spark.optimizer.rule import settings
from hedgerow.spark.start.progress import step
from hedgerow.spark.start.session import in_own_session, meaning
from hedgerow.spark.storage.delta_log import DeltaLog, Snapshot, delta_log
from hedgerow.spark.storage.paths import input_files, plain_path
from hedgerow.tables.base import facts_as_html
from hedgerow.tables.delta.repair import relearn, repair
from hedgerow.tables.delta.rewrite import append, lay_out, roll_back
from hedgerow.tables.delta.segment_list import SegmentList, newest_list, read_list
from hedgerow.tables.delta.segments import Segment, side_folder
from hedgerow.tables.delta.snapshot_files import file_names, footers_at, schema_at
from hedgerow.tables.explained import UNKNOWN, Explained, Group, explained
from hedgerow.tables.items_to_index import MAX_DESCRIBED_ITEMS
from hedgerow.tables.known_files import KnownFiles
from hedgerow.tables.settings_fit import settings_as_written
from hedgerow.tables.stored_joins import bound_with_joins, stale, usable
from hedgerow.tables.stored_joins import opened as opened_joins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_CHECKED_FILES = 8


@dataclass(frozen=True)
class DeltaTable:
    """A managed Delta table; open it with `hedgerow.table`. `listed`: its segments, from the newest list."""

    spark: SparkSession
    log: DeltaLog
    listed: SegmentList

    @staticmethod
    def open(spark: SparkSession, target: str) -> DeltaTable:
        return open_log(delta_log(spark, target))

    # --- the table and its index ---

    @property
    def path(self) -> str:
        return self.log.path

    @property
    def name(self) -> str:
        return self.listed.name

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments, the newest last."""
        return [Segment(side_folder(self.log), entry) for entry in self.listed.segments]

    @property
    def newest_segment(self) -> Segment:
        """The segment of the last write that was completed."""
        return next((s for s in reversed(self.segments) if self._was_committed(s.id)), self.segments[-1])

    def _was_committed(self, segment: str) -> bool:
        """Whether the write was committed: its version is listed, or its files exist (killed before the listing)."""
        if any(o.get("segment") == segment and "version" in o for o in self.listed.operations):
            return True
        here = self.snapshot().files.place
        return any(name in here for s in self.segments if s.id == segment for name in s.known.names)

    @property
    def layout(self) -> Layout:
        return self.newest_segment.layout

    @property
    def known(self) -> KnownFiles:
        """The indexed files that still exist."""
        snapshot = self.snapshot()
        places = [j for _, theirs in self.places(snapshot) for j in theirs.tolist()]
        return self.current(snapshot).take(sorted(set(places)))

    @property
    def written_under(self) -> Mapping[str, str]:
        return self.newest_segment.entry.settings

    def stale_joins(self) -> set[str]:
        """The joined rows of which the newest index tells nothing, because other tables have changed."""
        return self._stale(self.newest_segment)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The newest snapshot of the table, or that of a version."""
        return self.log.snapshot(version)

    # --- reading ---

    def files(self, where: str | None = None, version: int | None = None) -> list[str]:
        """The names of the files that a query with this condition opens, unindexed files included."""
        opened = set(map(plain_path, input_files(self.read(where, version=version))))
        return [n for n in self.snapshot(version).files.names if plain_path(self.log.full_path(n)) in opened]

    def skipped(self, predicates: Sequence[Predicate], snapshot: Snapshot) -> list[Bools]:
        """For each predicate and file of the snapshot, whether a segment proves that no row of it is TRUE."""
        skipped, now = np.zeros((len(predicates), len(snapshot.files.names)), bool), settings(self.spark)
        for segment, (mine, theirs) in zip(self.segments, self.places(snapshot), strict=True):
            if len(mine):
                index = self._index(segment, now, snapshot)
                for p, files in zip(predicates, skipped, strict=True):
                    files[theirs] |= ~index.to_open(p)[mine]
        return list(skipped)

    def _index(self, segment: Segment, now: Mapping[str, str], snapshot: Snapshot) -> BlockIndex:
        """The part of a segment's index that holds now."""
        index = segment.index(now, snapshot.columns)
        return without_columns(index, segment.entry.statistics, self._stale(segment))

    def rows_opened(self, found: Explained) -> DataFrame:
        """All rows of the files that are opened."""
        return self.snapshot().frame(found.opened)

    def explained(self, p: Predicate, columns: Sequence[str] | None = None) -> Explained:
        """Why a query for the rows on which `p` is TRUE opens or skips each file."""
        snapshot = self.snapshot()
        sizes, opened = snapshot.files, ~self.skipped([p], snapshot)[0]
        left, now = np.ones(len(opened), bool), settings(self.spark)
        groups: list[Group] = []
        silent: list[set[Predicate]] = []
        for segment, (mine, theirs) in reversed(list(zip(self.segments, self.places(snapshot), strict=True))):
            index = self._index(segment, now, snapshot)
            looked_at = np.zeros(len(segment.known), bool)
            skips = ~index.to_open(p)[mine]
            looked_at[mine] = left[theirs] & (skips | opened[theirs])
            is_open = np.zeros(len(segment.known), bool)
            is_open[mine] = opened[theirs]
            groups += explained(index, p, segment.known.names, segment.known.rows, is_open, looked_at)
            left[theirs[looked_at[mine]]] = False
            silent += [set(untold(index, p))] if len(mine) else []
        others = tuple(sizes.names[j] for j in np.flatnonzero(left))
        groups += [Group(True, UNKNOWN, others, int(self._rows_of_files(snapshot)[left].sum()))] if others else []
        return Explained.of(groups, set.intersection(*silent) if silent else ())

    def places(self, snapshot: Snapshot) -> list[tuple[Any, Any]]:
        """For each segment, the places of its files that are in the snapshot: in the segment, and in the snapshot."""
        places = []
        for segment in self.segments:
            at = [
                (i, j)
                for i, (name, size) in enumerate(segment.known.sizes_by_name.items())
                if (j := snapshot.files.place_of(name, size)) is not None
            ]
            pairs = np.array(at, np.int64).reshape(-1, 2)
            places.append((pairs[:, 0], pairs[:, 1]))
        return places

    def is_known(self, snapshot: Snapshot) -> Bools:
        """For each file of the snapshot, whether a segment describes it."""
        return _in_any(self.places(snapshot), len(snapshot.files.names))

    def read(
        self, where: str | None = None, columns: Sequence[str] | None = None, version: int | None = None
    ) -> DataFrame:
        """The matching rows, from just the files that may hold some; of an older version if one is given."""
        at = {} if version is None else {"versionAsOf": self.snapshot(version).version}
        frame = self.spark.read.format("delta").options(**at).load(self.path)
        if where is not None:
            frame = frame.where(where)
        return routed(self.spark, frame.select(*columns) if columns is not None else frame)

    def _stale(self, segment: Segment) -> set[str]:
        """The joined rows of which the segment tells nothing, because other tables have changed."""
        if segment.id not in self._stale_names:
            self._stale_names[segment.id] = stale(segment.entry.joined, usable(lambda: self._joins))
        return self._stale_names[segment.id]

    @cached_property
    def _stale_names(self) -> dict[str, set[str]]:
        return {}

    @cached_property
    def _joins(self) -> Joins:
        """The rows of other tables that the indexes speak of, as they are now."""
        return opened_joins(self.spark, [j for segment in self.segments for j in segment.entry.joined])

    # --- measuring ---

    def current(self, snapshot: Snapshot) -> KnownFiles:
        """All files of the snapshot, in its order; unindexed files have block -1."""
        files = snapshot.files
        parts: list[KnownFiles] = []
        places: list[list[int]] = []
        for segment, (mine, theirs) in zip(self.segments, self.places(snapshot), strict=True):
            fresh = [k for k, j in enumerate(theirs.tolist()) if j not in set().union(*places)]
            parts.append(segment.known.take(mine[fresh].tolist()))
            places.append(theirs[fresh].tolist())
        unknown = sorted(set(range(len(files.names))) - set().union(*places))
        sizes = {files.names[j]: int(files.sizes[j]) for j in unknown}
        parts.append(
            KnownFiles.of_footers(sizes, footers_at(snapshot, sizes), files.rows[unknown], [-1] * len(unknown))
        )
        all_files = parts[0]
        for part in parts[1:]:
            all_files = all_files + part
        order = np.argsort([j for some in (*places, unknown) for j in some])
        return all_files.take(order.tolist())

    def _repr_html_(self) -> str:
        return facts_as_html(self)

    def score(self, workload: Workload) -> Score:
        """The workload's exact cost, from the index alone; the share of matching rows would need a scan."""
        snapshot = self.snapshot()
        files = self.current(snapshot)
        rows = self._rows_of_files(snapshot)
        scores, weights = [], []
        for query, opened in self.opened(workload, snapshot):
            row_share = float(rows[opened].sum() / max(1, rows.sum()))
            read = read_columns(query.columns(self.name), query.predicate(self.name))
            byte_share = files.bytes_read(read, opened) / max(1, files.total(read))
            scores.append(QueryScore(query.id, row_share, float(opened.mean()), byte_share, None))
            weights.append(query.weight)
        return Score.mean(scores, weights, len(rows))

    def opened(self, workload: Workload, snapshot: Snapshot) -> list[tuple[Query, Bools]]:
        """The workload's queries, each with the files of the snapshot that it opens."""
        queries = self.bound(workload, snapshot)
        skipped = self.skipped([query.predicate(self.name) for query in queries], snapshot)
        return [(query, ~files) for query, files in zip(queries, skipped, strict=True)]

    def rows_read(self, predicates: Sequence[Predicate]) -> list[float]:
        """For each predicate, the share of the rows that it reads."""
        snapshot = self.snapshot()
        rows = self._rows_of_files(snapshot)
        skipped = self.skipped(predicates, snapshot)
        return [float(rows[~files].sum() / max(1, rows.sum())) for files in skipped]

    def _rows_of_files(self, snapshot: Snapshot) -> Ints:
        """The rows of each file, from Delta's log if it has the count."""
        rows: Ints = np.where(snapshot.files.rows < 0, self.current(snapshot).rows, snapshot.files.rows)
        return rows

    def describe(self) -> dict[str, Any]:
        """The table's facts, the origin of its layout, and how much of the layout is still in place."""
        snapshot = self.snapshot()
        places = self.places(snapshot)
        files, origin = snapshot.files, self.newest_segment.entry.origin
        shown = ("source", "learner", "parameters", "block_rows", "seed", "workload", "created", "versions")
        stored = [segment.stored.blocks for segment in self.segments]
        in_place: dict[int, int] = {}  # the rows of each file that an index describes, by its place
        for segment, (mine, theirs) in zip(self.segments, places, strict=True):
            in_place |= dict(zip(theirs.tolist(), segment.known.rows[mine].astype(int).tolist(), strict=True))
        rows = sorted(in_place.values()) or [0]
        return {
            "path": self.path,
            "table": self.name,
            "format": "delta",
            "version": snapshot.version,
            **{key: origin[key] for key in shown if key in origin},
            "layout": self.layout.kind,
            "blocks": len(in_place),
            "rows": int(np.maximum(files.rows, 0).sum()),
            "rows_per_block": {"least": rows[0], "median": rows[len(rows) // 2], "most": rows[-1]},
            "files": len(files.names),
            "bytes": int(files.sizes.sum()),
            **self._still_in_place(snapshot, places),
            "statistics": sorted({name for stats in stored for name in stats.terms}),
            "features": len({name for stats in stored for name in stats.conditions}),
            "steady_only": any(settings(self.spark) != segment.entry.settings for segment in self.segments),
        }

    def _still_in_place(self, snapshot: Snapshot, places: Sequence[tuple[Ints, Ints]]) -> dict[str, Any]:
        """A part of `describe` and `verify`: what is left of the last completed write, and which files are not indexed.

        `layout_files` and `layout_files_left` are the numbers of files that this write wrote and that still exist.
        `unknown_rows` is the share of the table's rows that are in files without an index.
        """
        files = snapshot.files
        known = _in_any(places, len(files.names))
        rows = np.maximum(files.rows, 0)
        unknown = [n for n, k in zip(files.names, known, strict=True) if not k]
        names = self.newest_segment.known.names
        left = places[self.segments.index(self.newest_segment)][0].tolist()
        return {
            "layout_files": len(names),
            "layout_files_left": len(left),
            "missing_files": sorted(set(names) - {names[i] for i in left}),
            "unknown_files": sorted(unknown),
            "unknown_rows": round(float(rows[~known].sum() / max(1, rows.sum())), 4),
        }

    @in_own_session
    def verify(self, seed: int = 0) -> dict[str, Any]:
        """Checks the rows of every write whose files are all unchanged, and the statistics of some files.

        Returns a report of what was checked and how much of the layout is left; HedgerowError names a difference.
        """
        snapshot = self.snapshot()
        wrong: list[str] = []
        whole, compared = 0, 0
        places = self.places(snapshot)
        for segment, (mine, theirs) in zip(self.segments, places, strict=True):
            untouched = len(mine) == len(segment.known) and not snapshot.files.deleted[theirs].any()
            if untouched and segment.entry.checksum is not None and self._same_columns(segment, snapshot):
                with step(self.spark, "comparing all rows"):
                    names = [segment.known.names[i] for i in mine]
                    actual = checksum(snapshot.frame(names).select(*map(quote_name, segment.entry.hashed)))
                expected = segment.entry.checksum
                whole += expected.rows
                if actual != expected:
                    wrong.append(f"its rows are not what was written: {actual}, but {expected} went in")
            plain = [i for i, j in zip(mine.tolist(), theirs.tolist(), strict=True) if not snapshot.files.deleted[j]]
            some = sorted(random.Random(seed).sample(plain, min(_MAX_CHECKED_FILES, len(plain))))
            if some and not wrong and self._same_columns(segment, snapshot):
                with step(self.spark, "comparing statistics"):
                    wrong += self._wrong_statistics(segment, some, snapshot)
                compared += len(some)
        if wrong:
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise HedgerowError(f"{self.path} is not as it was written: {wrong[0]}{more}")
        in_place = self._still_in_place(snapshot, places)
        return {
            "path": self.path,
            "version": snapshot.version,
            "rows": int(np.maximum(snapshot.files.rows, 0).sum()),
            "rows_compared": whole,
            "files": len(snapshot.files.names),
            "files_with_statistics_checked": compared,
            **{key: len(v) if isinstance(v, list) else v for key, v in in_place.items()},
        }

    def _same_columns(self, segment: Segment, snapshot: Snapshot) -> bool:
        return all(snapshot.columns.get(name) == identity for name, identity in segment.entry.columns.items())

    def _wrong_statistics(self, segment: Segment, places: Sequence[int], snapshot: Snapshot) -> list[str]:
        """A sentence for each of these files whose stored statistics differ from freshly collected ones."""
        names, items, lost = [segment.known.names[i] for i in places], segment.entry.statistics, self._stale(segment)
        described = {*segment.stored.blocks.terms, *segment.stored.blocks.conditions}
        with settings_as_written(self.spark, segment.entry.settings):
            fresh = collect_files(
                snapshot.frame(names),
                [i for i in items if sql_of(i) in described and not mentions(i, lost)],
                schema_at(snapshot),
                file_names(names),
                joins=usable(lambda: opened_joins(self.spark, segment.entry.joined)),
            )
            stored = repeat(without_columns(segment.stored, items, lost).blocks, np.array(places))
            fresh = with_words(fresh, snapshot.frame(names), stored, file_names(names))
        return differences(stored, fresh, names)

    # --- writing ---

    @in_own_session
    def append(self, frame: DataFrame) -> DeltaTable:
        """Writes new rows through the newest layout, in an append of Delta's own, and indexes the new files."""
        append(self.log, self.newest_segment, frame)
        return open_log(self.log)

    @in_own_session
    def lay_out(self, names: Sequence[str]) -> DeltaTable:
        """Rewrites some files, such as those that others appended, in the newest layout."""
        lay_out(self.log, self.newest_segment, self.name, names)
        return open_log(self.log)

    @in_own_session
    def repair(self) -> DeltaTable:
        """Collect again what the index says of other tables' rows, after these tables changed."""
        repair(self.log, self.segments, self._versions())
        return open_log(self.log)

    @in_own_session
    def relearn(self, workload: Workload, statistics: int = MAX_DESCRIBED_ITEMS) -> DeltaTable:
        """Let the index describe what other queries ask for; no row moves."""
        predicates = [query.predicate(self.name) for query in self.bound(workload, self.snapshot())]
        relearn(self.log, self.segments, self._versions(), predicates, statistics)
        return open_log(self.log)

    def _versions(self) -> dict[str, int]:
        """The versions of the table that the segments were written in, by their ids."""
        return {o["segment"]: int(o["version"]) for o in self.listed.operations if "segment" in o and "version" in o}

    def bound(self, workload: Workload, snapshot: Snapshot | None = None) -> Workload:
        """The queries with the table's types; those that cannot be bound are left out with a warning."""
        joined, schema = self.newest_segment.entry.joined, schema_at(snapshot or self.snapshot())
        bound = bound_with_joins(workload, self.name, schema, joined, usable(lambda: self._joins), meaning(self.spark))
        warn(f"{len(bound.skipped)} of {len(workload)} queries are left out", bound.skipped)
        return bound

    @in_own_session
    def rollback(self) -> DeltaTable:
        """Puts back the files that the last rewrite replaced; rows appended since then stay."""
        roll_back(self.log, self.listed, self.segments)
        return open_log(self.log)

    def history(self) -> list[dict[str, Any]]:
        """Hedgerow's operations on the table, the newest first, each with the table's version and its score.

        The version is None where a run was killed right after its commit.
        """
        done = [o for o in self.listed.operations if "version" in o or self._was_committed(o.get("segment", ""))]
        return [{"version": None, **o} for o in reversed(done)]


def _in_any(places: Sequence[tuple[Ints, Ints]], count: int) -> Bools:
    """For each of so many files of a snapshot, whether a segment has it."""
    known = np.zeros(count, bool)
    for _, theirs in places:
        known[theirs] = True
    return known


def differences(stored: Stats, fresh: Stats, names: Sequence[str]) -> list[str]:
    """A sentence for each file whose stored and fresh statistics differ."""
    same = agree(stored, fresh)
    return [f"the statistics of {name} are wrong" for name, is_same in zip(names, same, strict=True) if not is_same]


def open_log(log: DeltaLog) -> DeltaTable:
    """The managed table, with the newest list of its segments."""
    side = side_folder(log)
    number = newest_list(side)
    listed = read_list(side, number) if number else SegmentList()
    if not listed.segments:
        raise HedgerowError(
            f"{log.path} is no table that Hedgerow wrote: it is a Delta table to which no layout was applied"
        )
    return DeltaTable(log.spark, log, listed)
