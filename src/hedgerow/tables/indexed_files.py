"""Joins the files of a table with its index: decides which files a query opens, and gives the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.file_choice import FileChoice
from hedgerow.core.index.reasons import undecided_atoms
from hedgerow.core.index.sums import averaged_as_double
from hedgerow.core.predicates.nodes import Column, Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import OTHER, Type
from hedgerow.core.workload.wanted_files import files_for
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Function, WantedRows
from hedgerow.tables.explained import UNKNOWN, Group, explained
from hedgerow.tables.formats import Snapshot, schema_at
from hedgerow.tables.known_files import KnownFiles, is_hidden
from hedgerow.tables.part import JoinedParts
from hedgerow.tables.table_index import TableIndex


@dataclass(frozen=True)
class IndexedFiles:
    """The files of a snapshot with their index, which describes files by name and size.

    A file that it does not describe is opened by every query."""

    snapshot: Snapshot
    parts: Sequence[JoinedParts]

    @cached_property
    def places(self) -> list[tuple[Ints, Ints]]:
        """For each of the joined parts, the places of its existing files in its list, and in the snapshot.

        If two parts describe the same file, the last description counts."""
        owner = np.full((len(self.snapshot.files), 2), -1, np.int64)
        for number, part in enumerate(self.parts):
            place = self.snapshot.files.place
            at = np.fromiter((place.get(name, -1) for name in part.known.names), np.int64, len(part.known))
            exists = at >= 0
            exists[exists] = self.snapshot.files.sizes[at[exists]] == part.known.sizes[exists]
            owner[at[exists], 0], owner[at[exists], 1] = number, np.flatnonzero(exists)
        in_snapshot = [np.flatnonzero(owner[:, 0] == number) for number in range(len(self.parts))]
        return [(owner[at, 1], at) for at in in_snapshot]

    @cached_property
    def is_known(self) -> Bools:
        """True for each file that the index describes."""
        is_known = np.zeros(len(self.snapshot.files), bool)
        for _, in_snapshot in self.places:
            is_known[in_snapshot] = True
        return is_known

    @cached_property
    def is_visible(self) -> Bools:
        """True for each file that plain readers see."""
        return np.array([not is_hidden(name) for name in self.snapshot.files.names], bool)

    @cached_property
    def files(self) -> KnownFiles:
        """All files of the snapshot, in its order, with their rows and bytes; unindexed files have block -1."""
        files, unknown = self.snapshot.files, np.flatnonzero(~self.is_known)
        sizes = files.sizes_of([files.names[i] for i in unknown.tolist()])
        footers = self.snapshot.footers(sizes)
        rows = np.maximum(footers.rows, 0)
        lists = [part.known.take(in_part.tolist()) for part, (in_part, _) in zip(self.parts, self.places, strict=True)]
        lists.append(KnownFiles.of_footers(sizes, footers, rows, [-1] * len(sizes)))
        order = np.argsort(np.concatenate([*(in_snapshot for _, in_snapshot in self.places), unknown]))
        all_files = KnownFiles.concat(lists).take(order.tolist())
        return replace(all_files, rows=np.where(files.rows < 0, all_files.rows, files.rows))

    @cached_property
    def known(self) -> KnownFiles:
        """The files that the index describes."""
        return self.files.take(np.flatnonzero(self.is_known).tolist())

    def choose(self, p: Predicate) -> FileChoice:
        """Choose the files to open for the rows on which `p` is TRUE.

        Copies are read only if no file was changed, because they may have rows that were deleted since."""
        opened, cells = self.is_visible.copy(), None
        shares = opened.astype(float)
        with_copies = sum(part.index.cells is not None for part in self.parts)
        for part, (in_part, in_snapshot) in zip(self.parts, self.places, strict=True):
            is_whole = with_copies == 1 and len(in_part) == len(part.known)
            choice = part.index.choose_files(p, part.known.sizes, copies=is_whole)
            opened[in_snapshot] = choice.opened[in_part]
            rows = part.index.blocks.rows
            read = part.index.rows_to_read(p, choice.opened) / np.maximum(1, rows)
            shares[in_snapshot] = np.where(rows > 0, read, choice.opened)[in_part]
            cells = choice.copied_cells or cells
        return FileChoice(opened, cells, shares)

    @cached_property
    def _table_index(self) -> TableIndex:
        return TableIndex(self.parts)

    def choose_for(self, wanted: WantedRows, p: Predicate) -> FileChoice | None:
        """Choose the files for what a query wants of the rows on which `p` is TRUE; None if WHERE decides.

        The optimizer rule chooses the same files, see `tables/more_than_where`."""
        index, files, schema = self._table_index, self.snapshot.files, schema_at(self.snapshot)
        all_known = bool(self.is_known[self.is_visible].all())
        if not all_known and sums_longs(wanted, schema):
            return None
        starts = np.cumsum([0, *(len(part.known) for part in self.parts)])
        in_list = np.concatenate([starts[i] + in_part for i, (in_part, _) in enumerate(self.places)])
        in_snapshot = np.concatenate([at for _, at in self.places])
        read_once, deleted = np.zeros(index.count, bool), files.deleted[in_snapshot]
        read_once[in_list] = self.is_visible[in_snapshot]
        some_deleted = dict(zip(in_list[deleted != 0].tolist(), deleted[deleted != 0].tolist(), strict=True))
        chosen = files_for(index.joined, wanted, p, index.rows_left(read_once, some_deleted), schema)
        if chosen is None:
            return None
        opened = self.is_visible & (not isinstance(wanted, AnyRows))  # a limit needs no unknown file
        opened[in_snapshot] = chosen[in_list] & self.is_visible[in_snapshot]
        return None if opened[self.is_visible].all() else FileChoice(opened)

    def filters_skip(self, p: Predicate) -> bool:
        """True if some file would be opened without the filters of look-ups."""
        return any(part.index.filters_skip(p, part.index.may_hold(p)) for part in self.parts)

    def groups(self, p: Predicate, opened: Bools, otherwise: str) -> list[Group]:
        """Return the files in groups, by the reasons why they are opened or skipped; `opened`: True if opened.

        `otherwise`: the reason to skip a file that `p` does not exclude."""
        groups = []
        for part, (in_part, in_snapshot) in zip(self.parts, self.places, strict=True):
            exists, is_open = np.zeros((2, len(part.known)), bool)
            exists[in_part], is_open[in_part] = True, opened[in_snapshot]
            groups += explained(part.index, p, part.known.names, part.known.rows, is_open, exists, otherwise)
        unknown = np.flatnonzero(~self.is_known & self.is_visible).tolist()
        if unknown:
            names, unknown_open = tuple(self.snapshot.files.names[i] for i in unknown), bool(opened[unknown].any())
            because = UNKNOWN if unknown_open else otherwise
            groups.append(Group(unknown_open, because, names, int(self.files.rows[unknown].sum())))
        return groups

    def undecided_atoms(self, p: Predicate) -> Sequence[Predicate]:
        """Return the parts of `p` that the index has no statistics for, in any file."""
        places = zip(self.parts, self.places, strict=True)
        by_part = [undecided_atoms(part.index, p) for part, (in_part, _) in places if len(in_part)]
        return [atom for atom in by_part[0] if all(atom in atoms for atoms in by_part)] if by_part else []


def sums_longs(wanted: WantedRows, schema: Mapping[str, Type]) -> bool:
    """True if few rows can make a sum of the query overflow, or the doubles inexact that Spark adds up for an average.

    `WholeAggregates.java` asks the same of a plan."""

    def is_of_longs(name: Function, of: Column | None) -> bool:
        type_ = Type(OTHER) if of is None else schema.get(term_text(of), Type(OTHER))
        return (name == "sum" and type_ == Type("bigint")) or (name == "avg" and averaged_as_double(type_))

    return any(is_of_longs(*value) for value in (wanted.values if isinstance(wanted, Aggregates) else ()))
