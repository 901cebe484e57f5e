"""The data files that a table has at one moment: names, sizes, and rows where those are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Ints


@dataclass(frozen=True)
class PresentFiles:
    """The data files of a table. `rows`: without deleted rows, -1 if not known. `deleted`: the deleted rows."""

    names: tuple[str, ...]
    sizes: Ints
    rows: Ints
    deleted: Ints

    @staticmethod
    def of_sizes(sizes: Mapping[str, int]) -> PresentFiles:
        """Return files with known sizes and unknown rows."""
        unknown, none = np.full(len(sizes), -1, np.int64), np.zeros(len(sizes), np.int64)
        return PresentFiles(tuple(sizes), np.array(list(sizes.values()), np.int64), unknown, none)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def place_of(self, name: str, size: int) -> int | None:
        """Return the place of the file in the lists if it exists with this size, else None."""
        at = self.place.get(name)
        return at if at is not None and int(self.sizes[at]) == size else None

    def untouched(self, name: str, size: int) -> bool:
        """True if the file exists with this size and none of its rows was deleted."""
        at = self.place_of(name, size)
        return at is not None and not self.deleted[at]

    def places_of(self, sizes: Mapping[str, int]) -> list[int]:
        """Return the places of the files that exist with the given sizes."""
        places = (self.place_of(name, size) for name, size in sizes.items())
        return [place for place in places if place is not None]

    def sizes_of(self, names: list[str]) -> dict[str, int]:
        """Return the sizes of some files by name."""
        return {name: int(self.sizes[self.place[name]]) for name in names}
