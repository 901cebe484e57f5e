"""A tree of cuts: TRUE goes left, FALSE and NULL go right, a leaf is a block. Qd-trees are such trees.

          x < 10                cuts  (x < 10, y IN (1, 2))
          /     \\              nodes (cut, left, right): (0, 1, ~2) (1, ~0, ~1); ~b is block b
    y IN (1, 2)  block 2
      /     \\
  block 0  block 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hedgerow.core.layouts.base import BlockIds, Let, Write, in_brackets
from hedgerow.core.layouts.tree_kernels import go_down
from hedgerow.core.predicates.nodes import Predicate, Term
from hedgerow.core.predicates.sql_text import feature_text, predicate_text, term_text
from hedgerow.core.predicates.step_functions import Break, Steps, Stepwise, and3, combine, stepwise, true_points
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.block_stats import (
    ANY,
    F_BIT,
    N_BIT,
    T_BIT,
    UNBOUNDED,
    UNKNOWN_NULLS,
    Bound,
    NotedCondition,
    Stats,
    TermStats,
)
from hedgerow.core.pruning.row_batch import Rows

Node = tuple[int, int, int]  # cut, left, right; a child >= 0 is a node, ~b is block b
Path = tuple[tuple[int, bool], ...]  # cuts from the root down, each with the side taken (True: left)
Allowed = dict[tuple[Term, str | None], Stepwise]
_TYPE_OF_KIND = {"int": "bigint", "float": "double"}


@dataclass(frozen=True)
class TreeLayout:
    """A tree of cuts, with `nodes[0]` as the root; a tree without nodes is the single block 0."""

    kind: ClassVar[str] = "tree"
    cuts: tuple[Predicate, ...]
    nodes: tuple[Node, ...]

    @property
    def features(self) -> tuple[Predicate, ...]:
        return self.cuts

    @cached_property
    def blocks(self) -> int:
        return 1 + max((~child for _, *kids in self.nodes for child in kids if child < 0), default=0)

    def assign(self, rows: Rows) -> BlockIds:
        ids = np.zeros(len(rows), np.int32)
        if self.nodes:
            goes_left = np.array([rows.evaluate(cut) == T_BIT for cut in self.cuts])
            go_down(np.array(self.nodes, np.int32), goes_left, ids)
        return ids

    def assign_sql(self, write: Write = feature_text, let: Let = in_brackets) -> str:
        """Return nested CASEs; NULL goes to the right, as in the tree. Deep trees need no recursion here.

        A run of right turns is one CASE: Spark takes five times as long to parse a CASE inside the ELSE of another.
        """
        branches: dict[int, str] = {}
        for node in reversed(self.top_down()):
            cut, left, right = self.nodes[node]
            on_left = str(~left) if left < 0 else f"CASE {branches.pop(left)} END"
            on_right = f"ELSE {~right}" if right < 0 else branches.pop(right)
            branches[node] = f"WHEN {write(self.cuts[cut])} THEN {on_left} {on_right}"
        return f"CASE {branches[0]} END" if branches else "0"

    def relabelled(self, block_of: Sequence[int]) -> TreeLayout:
        """Return the same tree with `block_of[b]` as the block of leaf ~b; several leaves may get the same block.

        A node with the same block on both sides is dropped; the root only for block 0, because a tree without nodes
        means block 0.
        """
        new: dict[int, int] = {}  # for each node, its block as ~b, or the node itself if it still cuts

        def child(old: int) -> int:
            return new[old] if old >= 0 else ~int(block_of[~old])

        order = self.top_down()
        for node in reversed(order):
            left, right = map(child, self.nodes[node][1:])
            new[node] = left if left == right and left < 0 and (node or left == ~0) else node
        cutting = [node for node in order if new[node] == node]
        place = {node: i for i, node in enumerate(cutting)}
        cuts = sorted({self.nodes[node][0] for node in cutting})
        cut_place = {cut: i for i, cut in enumerate(cuts)}

        def kid(old: int) -> int:
            new_child = child(old)
            return place[new_child] if new_child >= 0 else new_child

        nodes = tuple((cut_place[c], kid(a), kid(b)) for c, a, b in (self.nodes[node] for node in cutting))
        return TreeLayout(tuple(self.cuts[c] for c in cuts), nodes)

    def with_trees_below(self, below: Sequence[TreeLayout]) -> TreeLayout:
        """Return this tree, each leaf of which is a block of its own, with `below[b]` in the place of block b."""
        if not self.nodes:
            return below[0]
        place: dict[Predicate, int] = {}
        nodes: list[Node] = []
        first_node, first_block = len(self.nodes), 0
        root = []  # of the tree below each leaf
        for tree in below:
            root.append(first_node if tree.nodes else ~first_block)
            for cut, *kids in tree.nodes:
                left, right = (kid + first_node if kid >= 0 else kid - first_block for kid in kids)
                nodes.append((place.setdefault(tree.cuts[cut], len(place)), left, right))
            first_node, first_block = first_node + len(tree.nodes), first_block + tree.blocks
        top: list[Node] = []
        for cut, *kids in self.nodes:
            left, right = (kid if kid >= 0 else root[~kid] for kid in kids)
            top.append((place.setdefault(self.cuts[cut], len(place)), left, right))
        return TreeLayout(tuple(place), (*top, *nodes))

    def top_down(self) -> list[int]:
        order, todo = [], [0] if self.nodes else []
        while todo:
            node = todo.pop()
            order.append(node)
            todo.extend(k for k in self.nodes[node][1:] if k >= 0)
        return order

    def paths(self) -> Iterator[tuple[int, Path]]:
        """Yield for each leaf its block and the cuts above it."""
        todo: list[tuple[int, Path]] = [(0 if self.nodes else -1, ())]
        while todo:
            node, path = todo.pop()
            if node < 0:
                yield ~node, path
                continue
            cut, left, right = self.nodes[node]
            todo += [(right, (*path, (cut, False))), (left, (*path, (cut, True)))]


def path_stats(cuts: Sequence[Predicate], paths: Sequence[Path]) -> Stats:
    """Return what the cuts of each path say about all rows at its end; entry i describes `paths[i]`."""
    bits = {cut: np.full(len(paths), ANY, np.uint8) for path in paths for cut, _ in path}
    for i, path in enumerate(paths):
        for cut, left in path:
            bits[cut][i] = T_BIT if left else F_BIT | N_BIT
    conditions = {predicate_text(cuts[cut]): NotedCondition(cuts[cut], own) for cut, own in bits.items()}
    return Stats(np.ones(len(paths), np.int64), promises([allowed_by(cuts, path) for path in paths]), conditions)


def allowed_by(cuts: Sequence[Predicate], path: Iterable[tuple[int, bool]]) -> Allowed:
    """Return for each term a step function that is TRUE on the values (and NULL) that the path lets through."""
    allowed: Allowed = {}
    for cut, left in path:
        s = stepwise(cuts[cut])
        if s is None:
            continue
        passes = combine(lambda a, _, left=left: (a is True) is left, s.steps, Steps((), (True,), True))  # type: ignore[misc]
        old = allowed.get((s.term, s.kind))
        steps = combine(and3, old.steps, passes) if old else passes
        allowed[s.term, s.kind] = Stepwise(s.term, s.kind, steps)
    return allowed


def promises(allowed: Sequence[Allowed]) -> dict[str, TermStats]:
    """Build statistics of the values that are let through: entry i describes `allowed[i]`."""
    every = {(s.term, s.kind) for steps in allowed for s in steps.values()}
    return {term_text(t): _promise(t, k, allowed) for t, k in sorted(every, key=str) if k is not None}


def _promise(term: Term, kind: str, allowed: Sequence[Allowed]) -> TermStats:
    everything = Steps((), (True,), True)
    steps = [entry[term, kind].steps if (term, kind) in entry else everything for entry in allowed]
    bounds = [_hull(s) for s in steps]
    nulls = [UNKNOWN_NULLS if s.on_null is True else 0 for s in steps]
    nan = [kind == "float" and s.at(NAN) is True for s in steps]
    type_ = Type(_TYPE_OF_KIND.get(kind, kind))
    points = [true_points(s) for s in steps]
    return TermStats.build(type_, bounds, nulls, nan, [p and [v for v in p if v is not NAN] for p in points])


def _hull(s: Steps) -> tuple[Bound, Bound] | None:
    """Return the first and the last value that is let through:   --====--==----   gives   --========----"""
    inside = [i for i, outcome in enumerate(s.outcomes) if outcome is True]
    if not inside:
        return None
    return _end(s.breaks, inside[0] - 1, 1), _end(s.breaks, inside[-1], -1)


def _end(breaks: tuple[Break, ...], i: int, inward: int) -> Bound:
    if not 0 <= i < len(breaks):
        return UNBOUNDED
    value, side = breaks[i]
    # A break just below v, seen from above, includes v; seen from below it ends in the gap under v.
    includes = (side == 0) == (inward == 1)
    return Bound(value, 0 if includes else inward)
