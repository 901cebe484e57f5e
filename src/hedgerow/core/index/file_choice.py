"""Which files to open where some rows lie in several: every needed cell from one place, and as little as can be.

A cell lives in its home, a block's own files, and copied in other blocks. A query needs the cells that may match.

    home of a            block 0 |a a a a c|                needs a and c     open 0
    home of b, copy of c block 1 |b b b b|  copies |c|      needs b and c     open 1 and its copies; not 0
                                                            needs c           open just the copies of 1

Cells that live in one place force it open. What they bring along is free, the rest comes from where it costs least per
cell. Homes hold each row once, so their files are read as they are; of copies only the cells that are taken from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from hedgerow.core.pruning.block_stats import Bools, Ints

Homes = Mapping[int, frozenset[int]]  # cell -> places that hold it whole
Places = dict[int, dict[int, set[int]]]  # cell -> place -> files


@dataclass(frozen=True)
class Parts:
    """Entry i is what of cell `cell[i]` lies in `file[i]`, at `place[i]`: b at home in block b, ~b copied there."""

    cell: Ints
    place: Ints
    file: Ints

    def followed_by(self, more: Parts, n: int) -> Parts:
        """The parts of both; the files of `more` are numbered after `n` others."""
        file = np.concatenate([self.file, more.file + n])
        return Parts(np.concatenate([self.cell, more.cell]), np.concatenate([self.place, more.place]), file)

    def homes(self, rows: Ints) -> Homes:
        """For each cell the places that hold all its rows, as many as its home."""
        found: dict[int, dict[int, int]] = {}
        for cell, place, n in zip(self.cell.tolist(), self.place.tolist(), rows.tolist(), strict=True):
            here = found.setdefault(cell, {})
            here[place] = here.get(place, 0) + n
        at_home = {cell: sum(n for place, n in here.items() if place >= 0) for cell, here in found.items()}
        return {cell: frozenset(p for p, n in here.items() if n == at_home[cell]) for cell, here in found.items()}


@dataclass(frozen=True)
class Cover:
    """`taken`: of the opened copies, the blocks and cells that are read; None if all that may match is to be read."""

    opened: Bools
    taken: tuple[tuple[int, int], ...] | None = None


def cover(needed: Bools, parts: Parts, homes: Homes, costs: Ints) -> Cover:
    """`needed`: parts that may hold a matching row; `homes`: where cells may be read; `costs`: of files."""
    at = np.flatnonzero(needed)
    places: Places = {}
    for cell, place, file in zip(*(a[at].tolist() for a in (parts.cell, parts.place, parts.file)), strict=True):
        if place in homes[cell]:
            places.setdefault(cell, {}).setdefault(place, set()).add(file)
    # The places of a cell hold the same rows: if in one of them none can match, no one does.
    places = {cell: found for cell, found in places.items() if len(found) == len(homes[cell])}
    files: dict[int, set[int]] = {}
    for found in places.values():
        for place, own in found.items():
            files.setdefault(place, set()).update(own)
    price = {place: int(costs[list(own)].sum()) for place, own in files.items()}
    chosen = _chosen(places, price)
    taken = {cell: _from(found, chosen) for cell, found in places.items()}
    opened = np.zeros(len(costs), bool)
    opened[[file for cell, place in taken.items() for file in places[cell][place]]] = True
    copies = {place for place in taken.values() if place < 0}
    twice = any(place in copies and place != taken[cell] for cell, found in places.items() for place in found)
    read = sorted((~place, cell) for cell, place in taken.items() if place < 0)
    return Cover(opened, tuple(read) if twice else None)


def _chosen(places: Places, price: Mapping[int, int]) -> dict[int, int]:
    """Places that together have all cells, numbered in the order in which they were chosen."""
    forced = sorted({place for found in places.values() if len(found) == 1 for place in found})
    chosen = {place: i for i, place in enumerate(forced)}
    brings: dict[int, set[int]] = {}
    for cell, found in places.items():
        if not any(place in chosen for place in found):
            for place in found:
                brings.setdefault(place, set()).add(cell)

    def rank(place: int) -> tuple[float, bool, int]:
        """What a cell costs there; of equal ones rather copies beside files that are opened anyway."""
        return price[place] / len(brings[place]), ~place not in chosen, place

    heap = [rank(place) for place in brings]
    heapify(heap)
    while heap:
        noted = heappop(heap)
        place = noted[2]
        if not brings[place]:
            continue
        if rank(place) > noted:  # others have brought some of its cells meanwhile
            heappush(heap, rank(place))
            continue
        chosen[place] = len(chosen)
        for cell in list(brings[place]):
            for other in places[cell]:
                brings[other].discard(cell)
    return chosen


def _from(found: Mapping[int, set[int]], chosen: Mapping[int, int]) -> int:
    """From home if that is opened, for then its rows are read anyway; else from where it was found first."""
    return min((place for place in found if place in chosen), key=lambda place: (place < 0, chosen[place]))
