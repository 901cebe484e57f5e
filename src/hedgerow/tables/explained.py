"""Groups the files of a table by the reason why a query opens or skips them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.reasons import all_match, skipped
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.score import Means

UNKNOWN = "the index does not know them"
_ALL, _SOME = "all rows match", "rows may match"
ELSEWHERE = "their rows are read from other files, which have them too"
SKIPPED_BY: dict[Means, str] = {
    "top-k": "other files surely hold enough rows that come before theirs",
    "limit": "other files surely hold enough rows",
    "aggregates": "the index knows the answer for their rows",
}


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
        means: how the files are chosen, as in `ScanReport`.
        rows_read: the share of the table's rows in the opened files.
        bytes_read: the bytes of the query's columns in the opened files.
    """

    groups: tuple[Group, ...]
    undecided: tuple[Predicate, ...] = ()
    replica: str | None = None
    means: Means = "where"
    rows_read: float = 1.0
    bytes_read: int = 0

    @property
    def opened(self) -> list[str]:
        return [name for group in self.groups if group.opened for name in group.files]

    def regrouped(self, groups: Iterable[Group]) -> Explained:
        """Return the same with other groups; those with the same reason are joined."""
        by_reason: dict[tuple[bool, str], Group] = {}
        for group in groups:
            key = group.opened, group.because
            before = by_reason.get(key, Group(*key, (), 0))
            rows = None if before.rows is None or group.rows is None else before.rows + group.rows
            by_reason[key] = Group(*key, before.files + group.files, rows)
        order = sorted(by_reason.values(), key=lambda group: (group.opened, -len(group.files), group.because))
        return replace(self, groups=tuple(order))


def explained(
    index: BlockIndex, p: Predicate, names: Sequence[str], rows: Ints, opened: Bools, exists: Bools, otherwise: str
) -> list[Group]:
    """Return the groups of the files that exist. Entry i of the index is the file `names[i]`.

    `otherwise`: the reason to skip a file that `p` does not exclude."""

    def group(is_open: bool, because: str, places: Ints) -> Group:
        at = places[exists[places]]
        return Group(is_open, because, tuple(names[i] for i in at.tolist()), int(rows[at].sum()))

    reasons, whole = skipped(index, p), all_match(index, p)
    excluded = np.zeros(len(names), bool)
    for reason in reasons:
        excluded[reason.blocks] = True
    groups = [group(False, str(reason), reason.blocks) for reason in reasons]
    groups.append(group(False, otherwise, np.flatnonzero(~opened & ~excluded)))
    groups.append(group(True, _ALL, np.flatnonzero(opened & whole)))
    groups.append(group(True, _SOME, np.flatnonzero(opened & ~whole)))
    return [g for g in groups if g.files]
