"""The files of a table that a rewrite may move by themselves, with their sizes and the queries that open them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.learning.seconds import Speed
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.evaluator import may_match
from hedgerow.core.workload.queries import Query
from hedgerow.pilot.file_seconds import mean_seconds, seconds_as_it_is, seconds_in_files
from hedgerow.spark.compute.evaluate import needed
from hedgerow.spark.storage.delta_log import Snapshot
from hedgerow.spark.storage.source import Source
from hedgerow.sql.workload import Workload
from hedgerow.tables.formats import footers_and_terms
from hedgerow.tables.managed import ManagedTable


@dataclass(frozen=True)
class Files:
    """The files of a table. A Parquet table, which can only be rewritten as a whole, counts as one file.

    `opened`: the files that each query opens. `is_new`: no index describes the file. `times`: how often its rows were
    rewritten recently, and `times_in_all`: ever. `newest`: it was written in the newest layout, as `append` would write
    it, and `blocks`: in which block of that, -1 for files of other layouts and of tables with partitions.
    """

    source: Source
    sizes: Floats
    opened: Sequence[tuple[Query, Bools]]
    is_new: Bools
    times: Floats
    newest: Bools
    times_in_all: Floats
    blocks: Ints

    def share_opened_of_newest(self) -> float:
        """Return the mean share of bytes in the newest layout that a query opens: an estimate for rows to come."""
        size = float(self.sizes[self.newest].sum())
        weights = [query.weight for query, _ in self.opened]
        if not size or not sum(weights):
            return 1.0
        opened = [self.sizes[self.newest & files].sum() for _, files in self.opened]
        return float(np.average(opened, weights=weights)) / size

    @property
    def all(self) -> Bools:
        return np.ones(len(self.sizes), bool)

    def names(self, part: Bools) -> list[str] | None:
        """Return the names of some files; None if these are all."""
        snapshot = self.source.snapshot
        if snapshot is None or part.all():
            return None
        return [name for name, chosen in zip(snapshot.files.names, part, strict=True) if chosen]

    def part(self, part: Bools) -> Source:
        """Return a source of the rows of some files."""
        names = self.names(part)
        return self.source if names is None else self.source.part(names)


def files_of(
    source: Source,
    managed: ManagedTable | None,
    queries: Sequence[Query],
    workload: Workload,
    moved: Mapping[str, float],
    moved_in_all: Mapping[str, float],
) -> Files:
    """Return the files of a table.

    `moved`: how often each part was moved recently. `moved_in_all`: how often at any time."""
    snapshot = source.snapshot
    if snapshot is None:
        size, is_new = np.array([source.size]), np.array([managed is None])
        return Files(source, size, (), is_new, np.zeros(1), np.zeros(1, bool), np.zeros(1), np.full(1, -1))
    count = len(snapshot.files)
    sizes = snapshot.files.sizes * (source.size / max(1, snapshot.files.sizes.sum()))
    if managed is None:
        times, newest, every = np.zeros(count), np.zeros(count, bool), np.ones(count, bool)
        opened = _opened_by_footers(snapshot, source.name, [(query, every) for query in queries], every)
        return Files(source, sizes, opened, every, times, newest, times, np.full(count, -1))
    past = past_of(managed, snapshot, moved, moved_in_all)
    indexed = managed.indexed(snapshot=snapshot)
    by_index = [(q, indexed.choose(q.predicate(managed.name)).opened) for q in managed.bound(workload)]
    opened = _opened_by_footers(snapshot, managed.name, by_index, ~indexed.is_known)
    return Files(source, sizes, opened, ~indexed.is_known, *past)


def past_of(
    managed: ManagedTable, snapshot: Snapshot, moved: Mapping[str, float], moved_in_all: Mapping[str, float]
) -> tuple[Floats, Bools, Floats, Ints]:
    """Return `times`, `newest`, `times_in_all` and `blocks` of a Delta table's files, as in `Files`."""
    count, layout = len(snapshot.files), managed.newest.entry.layout
    times, newest, times_in_all, blocks = np.zeros(count), np.zeros(count, bool), np.zeros(count), np.full(count, -1)
    # In a table with partitions, the number in a file's name is not that of a block.
    has_blocks = not snapshot.partition_columns
    for part in managed.parts:
        present = [snapshot.files.place_of(name, size) for name, size in part.known.sizes_by_name.items()]
        in_part = [i for i, place in enumerate(present) if place is not None]
        places = [place for place in present if place is not None]
        times[places] = np.maximum(times[places], moved.get(part.id, 0))
        times_in_all[places] = np.maximum(times_in_all[places], moved_in_all.get(part.id, 0))
        if part.entry.layout == layout:
            newest[places] = True
            blocks[places] = part.known.blocks[in_part] if has_blocks else -1
    return times, newest, times_in_all, blocks


def _opened_by_footers(
    snapshot: Snapshot, table: str, opened: Sequence[tuple[Query, Bools]], some: Bools
) -> list[tuple[Query, Bools]]:
    """Return the files that each query opens, without those of `some` whose footers say that no row matches."""
    places = np.flatnonzero(some)
    sizes = {snapshot.files.names[i]: int(snapshot.files.sizes[i]) for i in places.tolist()}
    predicates = [query.predicate(table) for query, _ in opened]
    footers, _, terms = footers_and_terms(snapshot, sizes, needed(predicates))
    stats = Stats(footers.rows, terms, {})
    by_footers = []
    for (query, files), p in zip(opened, predicates, strict=True):
        left = files.copy()
        left[places] &= may_match(p, stats)
        by_footers.append((query, left))
    return by_footers


def new_bytes(managed: ManagedTable | None) -> float:
    """Return the bytes of a Delta table's files without an index; 0 if its newest layout does not fit their columns."""
    if managed is None or not managed.format.is_shared:
        return 0.0
    indexed = managed.indexed()
    if indexed.snapshot.columns != managed.newest.entry.columns:
        return 0.0
    return float(indexed.snapshot.files.sizes[~indexed.is_known].sum())


def seconds_in(
    files: Files, managed: ManagedTable | None, queries: Sequence[Query], workload: Workload, speed: Speed
) -> Floats:
    """Return the mean seconds that a query spends in each file."""
    if files.opened:
        return seconds_in_files(files.source, speed, files.sizes, files.opened)
    if managed is None:
        now = seconds_as_it_is(files.source, queries, speed)
    else:
        now = mean_seconds(managed.score(workload), workload, files.source, speed)
    return np.full(1, now - speed.query)
