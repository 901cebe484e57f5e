"""Tells for each file of a table why a query opens or skips it, in groups of files with one reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.reasons import all_match, skipped
from hedgerow.core.predicates.nodes import Predicate

UNKNOWN = "the index does not know them"
_ALL, _SOME = "all rows match", "rows may match"
_ELSEWHERE = "their rows are read from other files, which hold them too"


@dataclass(frozen=True)
class Group:
    """Files that a query opens or skips for one reason. `rows`: in them, None if that is not known."""

    opened: bool
    because: str
    files: tuple[str, ...]
    rows: int | None


@dataclass(frozen=True)
class Explained:
    """Why files are skipped, and then why others are opened, the largest group first.

    `untold`: parts of the condition of which the index tells nothing. `replica`: the copy that is read, by its name."""

    groups: tuple[Group, ...]
    untold: tuple[Predicate, ...] = ()
    replica: str | None = None

    @property
    def opened(self) -> list[str]:
        return [name for group in self.groups if group.opened for name in group.files]

    @staticmethod
    def of(groups: Iterable[Group], untold: Iterable[Predicate], replica: str | None = None) -> Explained:
        """Groups of one reason become one."""
        found: dict[tuple[bool, str], Group] = {}
        for group in groups:
            key = group.opened, group.because
            before = found.get(key, Group(*key, (), 0))
            rows = None if before.rows is None or group.rows is None else before.rows + group.rows
            found[key] = Group(*key, before.files + group.files, rows)
        order = sorted(found.values(), key=lambda group: (group.opened, -len(group.files), group.because))
        return Explained(tuple(order), tuple(untold), replica)


def explained(
    index: BlockIndex, p: Predicate, names: Sequence[str], rows: Ints, opened: Bools, looked_at: Bools
) -> list[Group]:
    """Return the reasons for those files that are to be looked at. Entry i of the index is the file `names[i]`."""

    def group(is_open: bool, because: str, places: Iterable[int]) -> Group:
        at = [i for i in places if looked_at[i]]
        return Group(is_open, because, tuple(names[i] for i in at), int(rows[at].sum()))

    reasons = skipped(index, p)
    excluded = np.isin(np.arange(len(names)), [i for reason in reasons for i in reason.blocks])
    whole = all_match(index, p)
    found = [group(False, str(reason), reason.blocks) for reason in reasons]
    found.append(group(False, _ELSEWHERE, np.flatnonzero(~opened & ~excluded)))
    found.append(group(True, _ALL, np.flatnonzero(opened & whole)))
    found.append(group(True, _SOME, np.flatnonzero(opened & ~whole)))
    return [g for g in found if g.files]
