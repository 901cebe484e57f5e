"""Facts about the rows of a leaf that follow from the cuts above it, without a look at the rows.

Pando's trees are its index, so a query skips a leaf only if the cuts above the leaf contradict it (5):

    tool LIKE '%a%'               left    a query for tool LIKE '%a%' reads it, so does one for path LIKE '%a%'
      /        \\                 right   only the first skips it, even if no row of it has an a in its path
    left      right

A sample of the rows would show more facts, some of them by chance: those of the block index, which the trees lack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.layouts.tree import TreeLayout, path_stats
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.evaluator import possible_outcomes


def promised_facts(cuts: Sequence[Predicate]) -> Bools:
    """Return an array (4, cuts, cuts): the facts about cut j that cut i leaves possible, in the order of `fill_facts`.

    These are: j may be TRUE, and not TRUE, on the left of i; and the same on the right of i.
    """
    paths = [((cut, left),) for cut in range(len(cuts)) for left in (True, False)]
    stats = path_stats(cuts, paths)
    bits = np.array([possible_outcomes(cut, stats) for cut in cuts], np.uint8).reshape(len(cuts), len(cuts), 2)
    some, other = bits & T_BIT > 0, bits & (F_BIT | N_BIT) > 0
    return np.stack([some[:, :, 0].T, other[:, :, 0].T, some[:, :, 1].T, other[:, :, 1].T])


def facts_of_leaves(tree: TreeLayout, cuts: Sequence[Predicate], promised: Bools) -> tuple[Bools, Bools]:
    """Return `some` and `other` for each leaf of a tree and each of the problem's cuts."""
    number = {cut: i for i, cut in enumerate(cuts)}
    some, other = np.ones((2, tree.blocks, len(cuts)), bool)
    for leaf, path in tree.paths():
        for cut, left in path:
            at = number[tree.cuts[cut]]
            some[leaf] &= promised[0 if left else 2, at]
            other[leaf] &= promised[1 if left else 3, at]
    return some, other
