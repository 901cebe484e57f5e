"""A tree whose small leaves are kept in every large leaf beside them, so that nobody has to read his neighbour.

        N            cells   four of N rows, the one in the middle of a few
      N + N          home    the block that the middle's rows lie in
        N            copies  the other three, which have them too

Cutting may leave one side smaller than a block. Leaves that are large enough are the blocks; a small leaf lives in one
of its neighbours, and is copied to the others (Yang et al., SIGMOD 2020, 6.2). A row still has one block, its home:
that is the layout. The copies are for the writing side to make and for the index to know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np

from hedgerow.core.cover import Parts
from hedgerow.core.errors import FormatError
from hedgerow.core.expr import Predicate, text
from hedgerow.core.layout import BlockIds, Let, Write, in_brackets, sql_of
from hedgerow.core.problem import Problem
from hedgerow.core.rows import Rows
from hedgerow.core.sample import Sample
from hedgerow.core.stats import Stats, regroup
from hedgerow.core.steps import Steps, and3, combine, stepwise
from hedgerow.core.tree import TreeLayout, allowed_by
from hedgerow.core.views import BlockIndex, View

Relation = Literal["meet", "touch", "apart"]
Box = dict[str, Steps | bool]  # by dimension: the values let through, or the side of a cut that is no step function


@dataclass(frozen=True)
class OverlapLayout:
    """The tree's leaves are cells; `home[c]` is the block of cell c, `copies[c]` are further blocks that have it."""

    kind: ClassVar[str] = "overlap"
    tree: TreeLayout
    home: tuple[int, ...]
    copies: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        known = set(range(max(self.home, default=-1) + 1))
        right = [h in known and h not in c and known.issuperset(c) for h, c in zip(self.home, self.copies, strict=True)]
        if len(right) != self.tree.blocks or not all(right) or not (self.tree.nodes or self.home == (0,)):
            raise FormatError("an overlap says of each leaf of its tree which block is its home and which have copies")

    @property
    def features(self) -> tuple[Predicate, ...]:
        return self.tree.features

    @property
    def blocks(self) -> int:
        return max(self.home) + 1

    @cached_property
    def homes(self) -> TreeLayout:
        """The same tree with blocks in place of cells."""
        return self.tree.relabelled(self.home)

    def assign(self, rows: Rows) -> BlockIds:
        return self.homes.assign(rows)

    def assign_sql(self, write: Write = sql_of, let: Let = in_brackets) -> str:
        return self.homes.assign_sql(write, let)

    def regions(self) -> Stats:
        found = self.homes.regions()
        return regroup(found, range(len(found)), self.blocks)

    def describe(self, block: int) -> Predicate:
        return self.homes.describe(block)

    def code(self, block: int, cell: int) -> int:
        """One number for a cell copied to a block."""
        return block * len(self.home) + cell

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every cell and a block it is copied to."""
        return [(cell, block) for cell, blocks in enumerate(self.copies) for block in blocks]

    def index(self, sample: Sample) -> BlockIndex:
        """The index that the blocks, made of just the sample's rows, would have: first homes, then copies."""
        cells = self.tree.assign(sample.rows).astype(np.int64)
        home = np.array(self.home, np.int64)
        places = [(np.arange(len(cells)), cells, home[cells])]
        for cell, block in self.pairs:
            rows = np.flatnonzero(cells == cell)
            places.append((rows, cells[rows], np.full(len(rows), ~block, np.int64)))
        at, cell_of, place_of = (np.concatenate(list(arrays)) for arrays in zip(*places, strict=True))
        found, part = np.unique(np.stack([cell_of, place_of]), axis=1, return_inverse=True)
        rows_of_parts = sample.rows.take(at.astype(np.intp))
        stats = rows_of_parts.stats(part.reshape(-1), found.shape[1])
        cell, place = found.astype(np.int64)
        file = np.where(place >= 0, place, self.blocks + ~place)
        return BlockIndex((View(regroup(stats, file, 2 * self.blocks)), View(stats, None, Parts(cell, place, file))))

    def to_dict(self) -> dict[str, Any]:
        return {"tree": self.tree.to_dict(), "home": list(self.home), "copies": [list(c) for c in self.copies]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> OverlapLayout:
        copies = tuple(tuple(int(b) for b in blocks) for blocks in value["copies"])
        return cls(TreeLayout.from_dict(value["tree"]), tuple(int(b) for b in value["home"]), copies)


def overlapped(tree: TreeLayout, problem: Problem) -> TreeLayout | OverlapLayout:
    """The tree with its small leaves in the large ones beside them; as it is if all are large.

    A copy that no query would ever read together with its block is not made.
    """
    sizes = np.bincount(tree.assign(problem.sample.rows), minlength=tree.blocks)
    large = [c for c in range(tree.blocks) if sizes[c] >= problem.sample_block_rows] or [int(np.argmax(sizes))]
    small = [c for c in range(tree.blocks) if c not in set(large)]
    if not small:
        return tree
    block_of = {cell: block for block, cell in enumerate(large)}
    boxes, paths = _boxes(tree), {cell: path for cell, path in tree.paths()}
    cells = problem.cells(tree)
    may = problem.clauses.may(cells.some, cells.other).astype(np.float32)
    both = (may[small] * problem.clauses.weights) @ may[large].T
    home = [block_of.get(cell, 0) for cell in range(tree.blocks)]
    copies: list[tuple[int, ...]] = [()] * tree.blocks
    known: dict[Any, Relation] = {}
    for cell, shared in zip(small, both.tolist(), strict=True):
        beside = [k for k, other in enumerate(large) if neighbours(boxes[cell], boxes[other], known)]
        # Nobody beside it: with whom it parted last.
        near = beside or [max(range(len(large)), key=lambda k: _common(paths[cell], paths[large[k]]))]
        home[cell] = max(near, key=lambda k: (shared[k], -sizes[large[k]], -k))
        copies[cell] = tuple(k for k in beside if shared[k] > 0 and k != home[cell])
    return OverlapLayout(tree, tuple(home), tuple(copies))


def neighbours(a: Box, b: Box, known: dict[Any, Relation] | None = None) -> bool:
    """Whether two leaves share a side: adjacent in one dimension, with values in common in every other."""
    memo = {} if known is None else known
    touching = 0
    for dimension in a.keys() & b.keys():
        key = (dimension, a[dimension], b[dimension])
        if key not in memo:
            memo[key] = _relation(a[dimension], b[dimension])
        if memo[key] == "apart":
            return False
        touching += memo[key] == "touch"
    return touching == 1


def _relation(a: Steps | bool, b: Steps | bool) -> Relation:
    """====     meet          ====       touch         ====         apart
    ====                     ====                       ==="""
    if isinstance(a, bool) or isinstance(b, bool):
        return "meet" if a is b else "touch"
    common = combine(and3, a, b)
    if True in common.outcomes or common.on_null is True:
        return "meet"
    if True not in a.outcomes or True not in b.outcomes:
        return "touch"  # one lets only NULL through, which lies nowhere on the line
    line = combine(lambda x, y: True if x is True else False if y is True else None, a, b).outcomes
    side_by_side = any({x, y} == {True, False} for x, y in pairwise(line))
    return "touch" if side_by_side else "apart"


def _boxes(tree: TreeLayout) -> dict[int, Box]:
    found: dict[int, Box] = {}
    for cell, path in tree.paths():
        box: Box = {str(key): s.steps for key, s in allowed_by(tree.cuts, path).items()}
        for cut, left in path:
            if stepwise(tree.cuts[cut]) is None:
                box[text(tree.cuts[cut])] = left
        found[cell] = box
    return found


def _common(a: Sequence[object], b: Sequence[object]) -> int:
    """How many steps two paths share."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
