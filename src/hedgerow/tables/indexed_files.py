"""Joins the files of a table with its index: decides which files a query opens, and gives the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.file_choice import FileChoice
from hedgerow.core.index.reasons import undecided_atoms
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.tables.explained import UNKNOWN, Group, explained
from hedgerow.tables.formats import Snapshot
from hedgerow.tables.known_files import KnownFiles, is_hidden
from hedgerow.tables.part import JoinedParts


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
            for i, (name, size) in enumerate(zip(part.known.names, part.known.sizes.tolist(), strict=True)):
                j = self.snapshot.files.place_of(name, size)
                if j is not None:
                    owner[j] = number, i
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
        rows = np.array([max(0, footer.rows) for footer in footers], np.int64)
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
        with_copies = sum(part.index.cells is not None for part in self.parts)
        for part, (in_part, in_snapshot) in zip(self.parts, self.places, strict=True):
            is_whole = with_copies == 1 and len(in_part) == len(part.known)
            choice = part.index.choose_files(p, part.known.sizes, copies=is_whole)
            opened[in_snapshot] = choice.opened[in_part]
            cells = choice.copied_cells or cells
        return FileChoice(opened, cells)

    def groups(self, p: Predicate, opened: Bools) -> list[Group]:
        """Return the files in groups, by the reasons why they are opened or skipped; `opened`: True if opened."""
        groups = []
        for part, (in_part, in_snapshot) in zip(self.parts, self.places, strict=True):
            exists, is_open = np.zeros((2, len(part.known)), bool)
            exists[in_part], is_open[in_part] = True, opened[in_snapshot]
            groups += explained(part.index, p, part.known.names, part.known.rows, is_open, exists)
        unknown = np.flatnonzero(~self.is_known & self.is_visible).tolist()
        if unknown:
            names = tuple(self.snapshot.files.names[i] for i in unknown)
            groups.append(Group(True, UNKNOWN, names, int(self.files.rows[unknown].sum())))
        return groups

    def undecided_atoms(self, p: Predicate) -> Sequence[Predicate]:
        """Return the parts of `p` that the index has no statistics for, in any file."""
        places = zip(self.parts, self.places, strict=True)
        by_part = [undecided_atoms(part.index, p) for part, (in_part, _) in places if len(in_part)]
        return [atom for atom in by_part[0] if all(atom in atoms for atoms in by_part)] if by_part else []
