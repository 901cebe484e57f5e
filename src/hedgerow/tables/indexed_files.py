"""Joins the files of a table to its index: decides which files a query opens, and tells why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.reasons import undecided_atoms
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.tables.explained import UNKNOWN, Group, explained
from hedgerow.tables.formats import Snapshot
from hedgerow.tables.known_files import KnownFiles, is_hidden
from hedgerow.tables.part import JoinedParts


@dataclass(frozen=True)
class Choice:
    """For each file: is it opened? `copied_cells`: (block, cell) pairs to read of opened copies; None: all."""

    opened: Bools
    copied_cells: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class IndexedFiles:
    """The index describes files by name and size. Any other file is opened by every query."""

    snapshot: Snapshot
    parts: Sequence[JoinedParts]

    @cached_property
    def places(self) -> list[tuple[Ints, Ints]]:
        """For each of the joined parts, where those of its files that are there stand: in its list, in the snapshot.

        Of several descriptions of one file, the last one counts."""
        owner = np.full((len(self.snapshot.files), 2), -1, np.int64)
        for number, part in enumerate(self.parts):
            for i, (name, size) in enumerate(zip(part.known.names, part.known.sizes.tolist(), strict=True)):
                j = self.snapshot.files.place_of(name, size)
                if j is not None:
                    owner[j] = number, i
        theirs = [np.flatnonzero(owner[:, 0] == number) for number in range(len(self.parts))]
        return [(owner[at, 1], at) for at in theirs]

    @cached_property
    def is_known(self) -> Bools:
        """For each file: does the index describe it?"""
        known = np.zeros(len(self.snapshot.files), bool)
        for _, theirs in self.places:
            known[theirs] = True
        return known

    @cached_property
    def is_visible(self) -> Bools:
        """For each file: do plain readers see it?"""
        return np.array([not is_hidden(name) for name in self.snapshot.files.names], bool)

    @cached_property
    def files(self) -> KnownFiles:
        """All files of the snapshot, in its order, with their rows and bytes; unindexed files have block -1."""
        files, unknown = self.snapshot.files, np.flatnonzero(~self.is_known)
        sizes = files.sizes_of([files.names[i] for i in unknown.tolist()])
        footers = self.snapshot.footers(sizes)
        rows = np.array([max(0, footer.rows) for footer in footers], np.int64)
        lists = [part.known.take(mine.tolist()) for part, (mine, _) in zip(self.parts, self.places, strict=True)]
        lists.append(KnownFiles.of_footers(sizes, footers, rows, [-1] * len(sizes)))
        order = np.argsort(np.concatenate([*(theirs for _, theirs in self.places), unknown]))
        found = KnownFiles.concat(lists).take(order.tolist())
        return replace(found, rows=np.where(files.rows < 0, found.rows, files.rows))

    @cached_property
    def known(self) -> KnownFiles:
        """The files that the index describes."""
        return self.files.take(np.flatnonzero(self.is_known).tolist())

    def choose(self, p: Predicate) -> Choice:
        """Choose the files to open for the rows on which `p` is TRUE.

        Copies are read only if no file was changed: they may hold rows that are gone."""
        opened, cells = self.is_visible.copy(), None
        with_copies = sum(part.index.cells is not None for part in self.parts)
        for part, (mine, theirs) in zip(self.parts, self.places, strict=True):
            whole = with_copies == 1 and len(mine) == len(part.known)
            choice = part.index.choose_files(p, part.known.sizes, copies=whole)
            opened[theirs] = choice.opened[mine]
            cells = choice.copied_cells or cells
        return Choice(opened, cells)

    def groups(self, p: Predicate, opened: Bools) -> list[Group]:
        """Return the reasons why files are opened or skipped; `opened`: is it, for each file?"""
        groups = []
        for part, (mine, theirs) in zip(self.parts, self.places, strict=True):
            looked_at, is_open = np.zeros((2, len(part.known)), bool)
            looked_at[mine], is_open[mine] = True, opened[theirs]
            groups += explained(part.index, p, part.known.names, part.known.rows, is_open, looked_at)
        others = np.flatnonzero(~self.is_known & self.is_visible).tolist()
        if others:
            names = tuple(self.snapshot.files.names[i] for i in others)
            groups.append(Group(True, UNKNOWN, names, int(self.files.rows[others].sum())))
        return groups

    def undecided_atoms(self, p: Predicate) -> Sequence[Predicate]:
        """Return the parts of `p` of which the index tells nothing, in no file."""
        places = zip(self.parts, self.places, strict=True)
        silent = [undecided_atoms(part.index, p) for part, (mine, _) in places if len(mine)]
        return [atom for atom in silent[0] if all(atom in others for others in silent)] if silent else []
