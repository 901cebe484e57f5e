"""A region as a set of pieces: what the cuts on the way to a node of a tree let through, for all terms at once.

The literals of the cuts divide each term's values into pieces; a cut is TRUE on some of them. A condition that speaks
of more than one term has two pieces of its own, TRUE and not. So a region is a row of bits, and a cut an AND.

    x < 5, x < 9      x   ====5====9====     pieces 0 1 2, NULL 3     x < 9 lets 0 1 through, its right side 2 3
    y = 'b'           y   ====b'b'====       pieces 4 5 6, NULL 7     y = 'b' lets 5 through, its right side 4 6 7
    a < b                 TRUE | not         pieces 8, 9

For a network (the qd-tree paper's 5.2.3 and 6.1) it is said more briefly: of a term compared by < and > the first and
the last piece in binary, of one that is asked for single values each piece, of other conditions whether some row may
be TRUE.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import Break, Steps, stepwise
from hedgerow.core.pruning.block_stats import Bools, Ints


@dataclass(frozen=True)
class Pieces:
    """`sides` are 2 x cuts x pieces: what may lie left and right of each cut.

    `bounds` are the first and the last piece of each term that has its ends encoded; `marks` the pieces that are
    features themselves.
    """

    sides: Bools
    bounds: tuple[tuple[int, int], ...]
    marks: Ints

    @staticmethod
    def of(cuts: Sequence[Predicate]) -> Pieces:
        found = [stepwise(cut) for cut in cuts]
        terms: dict[tuple[str, str], list[int]] = {}
        for i, s in enumerate(found):
            if s is not None:
                terms.setdefault((term_text(s.term), s.kind or ""), []).append(i)
        sides: tuple[list[Bools], list[Bools]] = [], []

        def piece(own: list[int], true: list[bool]) -> None:
            for columns, through in zip(sides, (np.array(true), ~np.array(true)), strict=True):
                columns.append(np.ones(len(cuts), bool))
                columns[-1][own] = through

        bounds: list[tuple[int, int]] = []
        marks: list[int] = []
        for _, own in sorted(terms.items()):
            steps = [s.steps for s in map(found.__getitem__, own) if s is not None]
            breaks = sorted({b for s in steps for b in s.breaks})
            start, end = len(sides[0]), len(sides[0]) + len(breaks)
            for i in range(len(breaks) + 2):
                piece(own, [_true(s, breaks, i) for s in steps])
            if any(len(s.breaks) == 1 for s in steps):
                bounds.append((start, end))
            if any(len(s.breaks) != 1 for s in steps):
                marks += range(start, end + 2)
        for cut in (i for i, s in enumerate(found) if s is None):
            marks.append(len(sides[0]))
            piece([cut], [True])
            piece([cut], [False])
        kept = [np.array(columns, bool).reshape(len(columns), len(cuts)).T for columns in sides]
        return Pieces(np.stack(kept), tuple(bounds), np.array(marks, np.int64))

    @property
    def width(self) -> int:
        """How many features a region has."""
        return sum(2 * _bits(first, last) for first, last in self.bounds) + len(self.marks)

    def features(self, regions: Bools) -> Bools:
        """Regions x features, of regions x pieces."""
        parts = [regions[:, self.marks]]
        for first, last in self.bounds:
            inside = regions[:, first : last + 1]
            low = inside.argmax(axis=1)
            high = last - first - inside[:, ::-1].argmax(axis=1)
            shifts = np.arange(_bits(first, last))
            parts += [(end[:, None] >> shifts & 1).astype(bool) for end in (low, high)]
        return np.concatenate(parts, axis=1)


def _bits(first: int, last: int) -> int:
    return (last - first).bit_length()


def _true(s: Steps, breaks: Sequence[Break], piece: int) -> bool:
    """Whether it is TRUE on a piece: the i-th begins at break i - 1; the one after the last is NULL."""
    if piece > len(breaks):
        return s.on_null is True
    return s.outcomes[bisect_right(s.breaks, breaks[piece - 1]) if piece else 0] is True
