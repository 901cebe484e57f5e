"""Groups the files of a table by the reason why a query opens or skips them."""

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
_ELSEWHERE = "their rows are read from other files, which have them too"


@dataclass(frozen=True)
class Group:
    """Files that a query opens or skips for one reason. `rows`: their number of rows, None if not known."""

    opened: bool
    because: str
    files: tuple[str, ...]
    rows: int | None


@dataclass(frozen=True)
class Explained:
    """The groups of skipped files, and then of opened files, the largest group first.

    Args:
        undecided: the parts of the condition that the index has no statistics for.
        replica: the name of the copy that is read; None: the table itself.
    """

    groups: tuple[Group, ...]
    undecided: tuple[Predicate, ...] = ()
    replica: str | None = None

    @property
    def opened(self) -> list[str]:
        return [name for group in self.groups if group.opened for name in group.files]

    @staticmethod
    def of(groups: Iterable[Group], undecided: Iterable[Predicate], replica: str | None = None) -> Explained:
        """Join the groups with the same reason."""
        by_reason: dict[tuple[bool, str], Group] = {}
        for group in groups:
            key = group.opened, group.because
            before = by_reason.get(key, Group(*key, (), 0))
            rows = None if before.rows is None or group.rows is None else before.rows + group.rows
            by_reason[key] = Group(*key, before.files + group.files, rows)
        order = sorted(by_reason.values(), key=lambda group: (group.opened, -len(group.files), group.because))
        return Explained(tuple(order), tuple(undecided), replica)


def explained(
    index: BlockIndex, p: Predicate, names: Sequence[str], rows: Ints, opened: Bools, exists: Bools
) -> list[Group]:
    """Return the groups of the files that exist. Entry i of the index is the file `names[i]`."""

    def group(is_open: bool, because: str, places: Iterable[int]) -> Group:
        at = [i for i in places if exists[i]]
        return Group(is_open, because, tuple(names[i] for i in at), int(rows[at].sum()))

    reasons = skipped(index, p)
    excluded = np.isin(np.arange(len(names)), [i for reason in reasons for i in reason.blocks])
    whole = all_match(index, p)
    groups = [group(False, str(reason), reason.blocks) for reason in reasons]
    groups.append(group(False, _ELSEWHERE, np.flatnonzero(~opened & ~excluded)))
    groups.append(group(True, _ALL, np.flatnonzero(opened & whole)))
    groups.append(group(True, _SOME, np.flatnonzero(opened & ~whole)))
    return [g for g in groups if g.files]
