"""Two trees as the qd-tree paper has them (6.3): each grows for what the other leaves.

Greedy growth counts a query only in the tree where it skips more rows. A cut's gain is how far the rows that the query
skips in this tree then exceed those that it skips in the other one:

    rows that a query skips    in the other tree        =================|
                               in this tree so far      ============
                               after a cut              =====================
                                                                         ====  the gain
                               after another cut        ==============         no gain

The second tree grows beside the first, then the first again beside the second, as long as the queries skip more.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from hedgerow.core.arrays import Floats
from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.cells.kernels import LEAST_GAIN
from hedgerow.core.learning.problem import Problem
from hedgerow.core.learning.trees.greedy import NO_CUT, NO_PARENT, OpenNode, tree_of
from hedgerow.core.learning.trees.kernels import fill_facts, lacks_all, shortened
from hedgerow.core.learning.truth import count

MAX_TURNS = 8  # how often a tree is grown again


def two_trees(problem: Problem) -> tuple[TreeLayout, TreeLayout]:
    """Return the trees for two full copies of the table."""
    weights = problem.clauses.weights.astype(float)
    first, of_first = tree_beside(problem, np.zeros(len(weights)))
    second, of_second = tree_beside(problem, of_first)
    for _ in range(MAX_TURNS):
        again, of_again = tree_beside(problem, of_second)
        if weights @ np.maximum(of_again, of_second) <= weights @ np.maximum(of_first, of_second):
            break
        first, of_first, second, of_second = second, of_second, again, of_again
    return first, second


def tree_beside(problem: Problem, elsewhere: Floats) -> tuple[TreeLayout, Floats]:
    """Grow a tree from the top, level by level, left before right; return it with the rows that each query skips in it.

    `elsewhere` are the rows that each query skips in the other tree; with zeros this is Algorithm 1.
    """
    clauses, least = problem.clauses.arrays, problem.sample_block_rows
    root = OpenNode.root(problem)
    skipped = np.where(problem.clauses.may(root.some[None], root.other[None])[0], 0.0, root.rows)
    nodes: list[list[int]] = []
    leaves = 0
    todo = deque([(root, NO_PARENT, 0)])
    while todo:
        node, parent, side = todo.popleft()
        own = shortened(node.queries, clauses, node.some, node.other)
        lead = np.maximum(0.0, elsewhere - skipped)[node.queries]
        best, rows = best_cut_beside(node, count(node.bits), own, lead, least)
        if best == NO_CUT:
            child, leaves = ~leaves, leaves + 1
        else:
            skipped[node.queries] += rows
            child = len(nodes)
            nodes.append([int(node.cuts[best]), 0, 0])
            left, right = node.divided(best, clauses, True)
            todo += [(left, child, 1), (right, child, 2)]
        if parent != NO_PARENT:
            nodes[parent][side] = child
    return tree_of(problem, nodes), skipped


@compiled_loop()
def best_cut_beside(node: Any, sizes: Any, clauses: Any, lead: Any, least: int) -> Any:
    """Return the place of the cut with the largest gain, -1 if none gains, and the rows that each query then skips.

    `lead`: how many more rows each query skips in the other tree than in this one so far."""
    n, weights = node.rows, clauses[4]
    ls, lo, rs, ro = node.some.copy(), node.other.copy(), node.some.copy(), node.other.copy()
    best, best_gain, best_rows = -1, LEAST_GAIN * n, np.zeros(len(lead))
    rows = np.zeros(len(lead))
    for c in range(len(sizes)):
        left = sizes[c]
        right = n - left
        if min(left, right) < least:
            continue
        fill_facts(node, c, node.used, (ls, lo, rs, ro))
        gain = 0.0
        for q in range(len(lead)):
            rows[q] = left * _skips(q, clauses, ls, lo) + right * _skips(q, clauses, rs, ro)
            gain += weights[q] * max(0.0, rows[q] - lead[q])
        if gain > best_gain:
            best, best_gain = c, gain
            best_rows[:] = rows
    return best, best_rows


@compiled_loop()
def _skips(q: int, clauses: Any, some: Any, other: Any) -> bool:
    """True if the query skips a set of rows: no fact of one of its clauses holds there."""
    needs, starts = clauses[2], clauses[3]
    skips = False
    for at in range(starts[q], starts[q + 1]):
        skips = skips or lacks_all(needs[at], clauses, some, other)
    return skips
