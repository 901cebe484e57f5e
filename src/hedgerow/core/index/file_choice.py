"""Choose the files to open if some rows are in several files: every needed cell from one place, at the least cost.

A cell lies in its home (the ordinary file of one block), and some cells are copied to other blocks. A query needs the
cells that may match.

    home of a            block 0 |a a a a c|                needs a and c     open 0
    home of b, copy of c block 1 |b b b b|  copies |c|      needs b and c     open 1 and its copies; not 0
                                                            needs c           open just the copies of 1

A cell in only one place forces it open. Other cells in opened places are free; the rest is read from the places that
cost least per cell. Homes hold each row once, so all rows of their files are read; of copies only the chosen cells.

A place is a number: b is the home in block b, ~b (negative) are the copies in block b.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints

WholePlaces = Mapping[int, frozenset[int]]  # cell -> places that hold all its rows
Places = dict[int, dict[int, set[int]]]  # cell -> place -> files


@dataclass(frozen=True)
class CellParts:
    """Parts of cells: entry i is the part of cell `cell[i]` that lies in file `file[i]`, at place `place[i]`."""

    cell: Ints
    place: Ints
    file: Ints

    @staticmethod
    def concat(parts: Sequence[CellParts], files: Sequence[int]) -> CellParts:
        """Return the parts of several indexes, one after the other; `files`: how many files each has."""
        starts = np.cumsum([0, *files[:-1]])
        file = np.concatenate([p.file + start for p, start in zip(parts, starts, strict=True)])
        return CellParts(np.concatenate([p.cell for p in parts]), np.concatenate([p.place for p in parts]), file)

    def whole_places(self, rows: Ints) -> WholePlaces:
        """Return for each cell the places that hold all its rows, that is, as many rows as its home."""
        rows_at: dict[int, dict[int, int]] = {}
        for cell, place, n in zip(self.cell.tolist(), self.place.tolist(), rows.tolist(), strict=True):
            places = rows_at.setdefault(cell, {})
            places[place] = places.get(place, 0) + n
        at_home = {cell: sum(n for p, n in places.items() if p >= 0) for cell, places in rows_at.items()}
        return {cell: frozenset(p for p, n in places.items() if n == at_home[cell]) for cell, places in rows_at.items()}


@dataclass(frozen=True)
class FileChoice:
    """The files to open, as a mask, and the (block, cell) pairs to read from copies; None means all of them.

    `read`: the share of each file's rows that is read, which is less than 1 if some row groups are skipped.
    """

    opened: Bools
    copied_cells: tuple[tuple[int, int], ...] | None = None
    read: Floats | None = None

    @property
    def shares(self) -> Floats:
        return self.opened.astype(float) if self.read is None else self.read


def choose_files(needed: Bools, parts: CellParts, whole_places: WholePlaces, costs: Ints) -> FileChoice:
    """Choose files that hold every needed cell; `needed`: for each part whether a row may match, `costs`: per file."""
    at = np.flatnonzero(needed)
    places: Places = {}
    for cell, place, file in zip(*(a[at].tolist() for a in (parts.cell, parts.place, parts.file)), strict=True):
        if place in whole_places[cell]:
            places.setdefault(cell, {}).setdefault(place, set()).add(file)
    # All whole places of a cell hold the same rows: if no row can match in one of them, no row matches in the others.
    places = {cell: files_at for cell, files_at in places.items() if len(files_at) == len(whole_places[cell])}
    place_files: dict[int, set[int]] = {}
    for files_at in places.values():
        for place, files in files_at.items():
            place_files.setdefault(place, set()).update(files)
    price = {place: int(costs[list(files)].sum()) for place, files in place_files.items()}
    chosen = _choose_places(places, price)
    source = {cell: _source(files_at, chosen) for cell, files_at in places.items()}
    opened = np.zeros(len(costs), bool)
    opened[[file for cell, place in source.items() for file in places[cell][place]]] = True
    copies = {place for place in source.values() if place < 0}
    read_twice = any(place in copies and place != source[cell] for cell in places for place in places[cell])
    copied_cells = sorted((~place, cell) for cell, place in source.items() if place < 0)
    return FileChoice(opened, tuple(copied_cells) if read_twice else None)


def _choose_places(places: Places, price: Mapping[int, int]) -> dict[int, int]:
    """Return places that together hold all cells, numbered in the order in which they were chosen."""
    forced = sorted({place for files_at in places.values() if len(files_at) == 1 for place in files_at})
    chosen = {place: i for i, place in enumerate(forced)}
    missing_cells: dict[int, set[int]] = {}  # by place: cells that no chosen place holds
    for cell, files_at in places.items():
        if not any(place in chosen for place in files_at):
            for place in files_at:
                missing_cells.setdefault(place, set()).add(cell)

    def rank(place: int) -> tuple[float, bool, int]:
        """Return a sort key: the cost per missing cell; ties go to a block that is opened anyway."""
        return price[place] / len(missing_cells[place]), ~place not in chosen, place

    heap = [rank(place) for place in missing_cells]
    heapify(heap)
    while heap:
        old_rank = heappop(heap)
        place = old_rank[2]
        if not missing_cells[place]:
            continue
        if rank(place) > old_rank:  # a place chosen since then holds some of its cells
            heappush(heap, rank(place))
            continue
        chosen[place] = len(chosen)
        for cell in list(missing_cells[place]):
            for other_place in places[cell]:
                missing_cells[other_place].discard(cell)
    return chosen


def _source(files_at: Mapping[int, set[int]], chosen: Mapping[int, int]) -> int:
    """Return the place to read a cell from: its home if that is opened anyway, else the place that was chosen first."""
    return min((place for place in files_at if place in chosen), key=lambda place: (place < 0, chosen[place]))
