"""Choose the small leaves of a tree to copy into neighbouring large leaves (Yang et al., SIGMOD 2020, 6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hedgerow.core.arrays import Bools, Floats, Ints
from hedgerow.core.layouts.overlap import OverlapLayout
from hedgerow.core.layouts.tree import TreeLayout, allowed_by
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.sql_text import predicate_text
from hedgerow.core.predicates.step_functions import Steps, and3, combine, stepwise

Relation = Literal["meet", "touch", "apart"]
Box = dict[str, Steps | bool]  # by dimension: the values in the leaf, or the side of a cut that is no step function

_MAX_ROUNDS = 3  # rounds of choosing copies: each changes the homes that queries open


def overlapped(tree: TreeLayout, problem: Problem) -> TreeLayout | OverlapLayout:
    """Copy the tree's small leaves into neighbouring large leaves where that pays off.

    Return the tree itself if it has no small leaves.
    """
    sizes = np.bincount(tree.assign(problem.sample.rows), minlength=tree.blocks)
    large = np.flatnonzero(sizes >= problem.sample_block_rows)
    if not len(large):
        large = np.argmax(sizes).reshape(1)
    small = np.setdiff1d(np.arange(tree.blocks), large)
    if not len(small):
        return tree
    cells = problem.cells(tree)
    may, weights = problem.clauses.may(cells.some, cells.other), problem.clauses.weights.astype(float)
    home = np.zeros(tree.blocks, np.int64)
    home[large] = np.arange(len(large))
    home[small] = _homes(sizes, may, weights, small, large)
    boxes = _boxes(tree)
    cache: dict[Any, Relation] = {}
    beside = {
        cell: [k for k in range(len(large)) if k != home[cell] and neighbours(boxes[cell], boxes[large[k]], cache)]
        for cell in small.tolist()
    }
    copied = _copies(sizes, may, weights, home, large, beside)
    copies = tuple(tuple(sorted(copied.get(cell, ()))) for cell in range(tree.blocks))
    return OverlapLayout(tree, tuple(home.tolist()), copies)


def _homes(sizes: Ints, may: Bools, weights: Floats, small: Ints, large: Ints) -> Ints:
    """Return for each small cell the large cell with which queries read the fewest unneeded rows."""
    of_small, of_large = may[small] * weights, may[large].astype(float)
    both = of_small @ of_large.T
    wasted = sizes[small, None] * (of_large @ weights - both)
    wasted += sizes[None, large] * (of_small.sum(axis=1)[:, None] - both)
    homes: Ints = np.argmin(wasted, axis=1)
    return homes


def _copies(
    sizes: Ints, may: Bools, weights: Floats, home: Ints, large: Ints, beside: Mapping[int, Sequence[int]]
) -> dict[int, list[int]]:
    """Return for each cell the large cells that get a copy of it; copies are chosen for the smallest cells first.

    A copy pays off if it saves more rows of its home than it adds to other reads and to storage. The queries that still
    open a home depend on all of its cells, so the choice is repeated with the result.
    """
    opened = may[large].copy()
    copies: dict[int, list[int]] = {}
    for _ in range(_MAX_ROUNDS):
        copied_rows = np.zeros(len(large))
        reads = np.zeros_like(opened)  # blocks x queries: the query reads the copies of the block
        before, copies = copies, {}
        for cell in sorted(beside, key=lambda c: (sizes[c], c)):
            only_here = may[cell] & ~opened[home[cell]]  # queries that would open its home only for this cell
            for k in sorted(beside[cell], key=lambda k: -float(weights @ (only_here & may[large[k]]))):
                served = only_here & may[large[k]]
                gain = (sizes[large[home[cell]]] - sizes[cell]) * (weights @ served)
                gain -= sizes[cell] * (weights @ (reads[k] & ~may[cell]))
                gain -= copied_rows[k] * (weights @ (served & ~reads[k]))
                if gain > sizes[cell]:
                    copies.setdefault(cell, []).append(k)
                    copied_rows[k] += sizes[cell]
                    reads[k] |= served
                    only_here = only_here & ~served
        if copies == before:
            break
        opened = may[large].copy()
        for cell in beside:
            served = may[large[copies.get(cell, [])]].any(axis=0)
            opened[home[cell]] |= may[cell] & ~served
    return copies


def neighbours(a: Box, b: Box, cache: dict[Any, Relation] | None = None) -> bool:
    """True if two leaves share a side: adjacent in one dimension, with values in common in every other."""
    cache = {} if cache is None else cache
    touching = 0
    for dimension in a.keys() & b.keys():
        key = (dimension, a[dimension], b[dimension])
        if key not in cache:
            cache[key] = _relation(a[dimension], b[dimension])
        if cache[key] == "apart":
            return False
        touching += cache[key] == "touch"
    return touching == 1


def _relation(a: Steps | bool, b: Steps | bool) -> Relation:
    """Return how two extents in one dimension lie to each other.

    ====     meet          ====       touch         ====         apart
    ====                     ====                       ===
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return "meet" if a is b else "touch"
    common = combine(and3, a, b)
    if True in common.outcomes or common.on_null is True:
        return "meet"
    if True not in a.outcomes or True not in b.outcomes:
        return "touch"  # one has only NULL, which has no place among the values
    line = combine(lambda x, y: True if x is True else False if y is True else None, a, b).outcomes
    side_by_side = any({x, y} == {True, False} for x, y in pairwise(line))
    return "touch" if side_by_side else "apart"


def _boxes(tree: TreeLayout) -> dict[int, Box]:
    """Return for each cell its extent in every dimension."""
    boxes: dict[int, Box] = {}
    for cell, path in tree.paths():
        box: Box = {str(key): s.steps for key, s in allowed_by(tree.cuts, path).items()}
        for cut, left in path:
            if stepwise(tree.cuts[cut]) is None:
                box[predicate_text(tree.cuts[cut])] = left
        boxes[cell] = box
    return boxes
