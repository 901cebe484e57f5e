"""Regions of a tree's nodes as bits: for every term, the pieces that the cuts above a node let pass.

The literals of the cuts divide each term's values into pieces; a cut is TRUE on some of them. A condition on several
terms has two pieces of its own, TRUE and not TRUE. So a region is a row of bits, and each cut ANDs it with a mask.

    x < 5, x < 9      x   ====5====9====     pieces 0 1 2, NULL 3     x < 9 lets 0 1 pass, its right side 2 3
    y = 'b'           y   ====b'b'====       pieces 4 5 6, NULL 7     y = 'b' lets 5 pass, its right side 4 6 7
    a < b                 TRUE | not         pieces 8, 9

The network's input is shorter (qd-tree paper, 5.2.3 and 6.1). For a term compared by < and >, it has the first and the
last piece in binary; for a term compared with single values, each piece; for other conditions, whether they may be
TRUE.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import Break, Steps, stepwise


@dataclass(frozen=True)
class Pieces:
    """The pieces of all terms. `sides` is 2 x cuts x pieces: whether a piece may go left, and right, at each cut.

    `bounds` are the first and the last piece of each term whose ends are encoded in binary; `marks` are the pieces that
    are features themselves.
    """

    sides: Bools
    bounds: tuple[tuple[int, int], ...]
    marks: Ints

    @staticmethod
    def of(cuts: Sequence[Predicate]) -> Pieces:
        steps_of_cut = [stepwise(cut) for cut in cuts]
        terms: dict[tuple[str, str], list[int]] = {}
        for i, s in enumerate(steps_of_cut):
            if s is not None:
                terms.setdefault((term_text(s.term), s.kind or ""), []).append(i)
        sides: tuple[list[Bools], list[Bools]] = [], []

        def add_piece(of_cuts: list[int], true: list[bool]) -> None:
            for columns, passes in zip(sides, (np.array(true), ~np.array(true)), strict=True):
                columns.append(np.ones(len(cuts), bool))
                columns[-1][of_cuts] = passes

        bounds: list[tuple[int, int]] = []
        marks: list[int] = []
        for _, of_term in sorted(terms.items()):
            steps = [s.steps for s in map(steps_of_cut.__getitem__, of_term) if s is not None]
            breaks = sorted({b for s in steps for b in s.breaks})
            start, end = len(sides[0]), len(sides[0]) + len(breaks)
            for i in range(len(breaks) + 2):
                add_piece(of_term, [_is_true(s, breaks, i) for s in steps])
            if any(len(s.breaks) == 1 for s in steps):
                bounds.append((start, end))
            if any(len(s.breaks) != 1 for s in steps):
                marks += range(start, end + 2)
        for cut in (i for i, s in enumerate(steps_of_cut) if s is None):
            marks.append(len(sides[0]))
            add_piece([cut], [True])
            add_piece([cut], [False])
        both = [np.array(columns, bool).reshape(len(columns), len(cuts)).T for columns in sides]
        return Pieces(np.stack(both), tuple(bounds), np.array(marks, np.int64))

    @property
    def width(self) -> int:
        """The number of features of a region."""
        return sum(2 * _bits(first, last) for first, last in self.bounds) + len(self.marks)

    def features(self, regions: Bools) -> Bools:
        """Encode regions for the network: regions x pieces become regions x features."""
        columns = [regions[:, self.marks]]
        for first, last in self.bounds:
            inside = regions[:, first : last + 1]
            low = inside.argmax(axis=1)
            high = last - first - inside[:, ::-1].argmax(axis=1)
            shifts = np.arange(_bits(first, last))
            columns += [(end[:, None] >> shifts & 1).astype(bool) for end in (low, high)]
        return np.concatenate(columns, axis=1)


def _bits(first: int, last: int) -> int:
    return (last - first).bit_length()


def _is_true(s: Steps, breaks: Sequence[Break], piece: int) -> bool:
    """True if the step function is TRUE on a piece. Piece i begins at break i - 1; the piece after the last is NULL."""
    if piece > len(breaks):
        return s.on_null is True
    return s.outcomes[bisect_right(s.breaks, breaks[piece - 1]) if piece else 0] is True
