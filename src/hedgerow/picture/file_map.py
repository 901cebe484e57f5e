"""The places of files in the plane of two columns: a box from the least to the largest value that a file has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hedgerow.core.predicates.nodes import Literal
from hedgerow.core.predicates.sql_text import literal_text
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import TermStats

_MOST_COLUMNS = 5  # ten pairs
Ends = tuple[Value, Value]
Part = tuple[TermStats, Sequence[str]]  # what a part of the index knows of a column, and the names of its files


@dataclass(frozen=True)
class Axis:
    """A column, with the least and the largest value of all files."""

    column: str
    least: str
    largest: str


@dataclass(frozen=True)
class Box:
    """A file; the ends are shares of the axes' lengths, on which all ends of files are evenly spaced."""

    name: str
    across: tuple[float, float]
    up: tuple[float, float]


@dataclass(frozen=True)
class FileMap:
    """The boxes of all files whose values of both columns are known."""

    across: Axis
    up: Axis
    boxes: tuple[Box, ...]


def file_maps(files: Collection[str], columns: Mapping[str, Iterable[Part]]) -> tuple[FileMap, ...]:
    """Return the maps of all pairs of the first columns, with boxes for these files."""
    placed = (_placed(column, files, parts) for column, parts in columns.items())
    known = [place for place in placed if place is not None][:_MOST_COLUMNS]
    maps = []
    for (across, x), (up, y) in combinations(known, 2):
        maps.append(FileMap(across, up, tuple(Box(name, x[name], y[name]) for name in x if name in y)))
    return tuple(own for own in maps if own.boxes)


def _placed(
    column: str, files: Collection[str], parts: Iterable[Part]
) -> tuple[Axis, dict[str, tuple[float, float]]] | None:
    """Return the axis of a column, and the ends of each file on it; None if they are not known."""
    ends: dict[str, Ends] = {}
    kinds = set()
    for stats, names in parts:
        kinds.add(stats.type.kind)
        for i, name in enumerate(names):
            own = _ends(stats, i) if name in files else None
            if own is not None:
                ends[name] = own
    if not ends or len(kinds) > 1:
        return None
    kind = kinds.pop()
    values = sorted({value for own in ends.values() for value in own})
    share = {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}
    least, largest = (literal_text(Literal(kind, value)) for value in (values[0], values[-1]))
    return Axis(column, least, largest), {name: (share[low], share[high]) for name, (low, high) in ends.items()}


def _ends(stats: TermStats, entry: int) -> Ends | None:
    """Return the least and the largest value of an entry; None if it has none, or if they are not known."""
    low, high, count = int(stats.low[entry]), int(stats.high[entry]), len(stats.values)
    if low > high or low == 0 or high == 2 * count:
        return None
    # Value i has the code 2 i + 1, and the gap below it 2 i.
    return stats.values[low // 2], stats.values[(high - 1) // 2]
