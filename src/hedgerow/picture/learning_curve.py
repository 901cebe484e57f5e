"""The learning curve of a tree: the rows that queries would read if only its first levels divided the table.

levels   blocks   rows read
   0        1       100 %      one block
   1        2        60 %      the cut at the root
   3        7        12 %      the whole tree
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.score_layout import score_layout
from hedgerow.core.learning.synthetic_queries import with_unseen_literals
from hedgerow.core.predicates.nodes import Predicate
from hedgerow.core.workload.queries import Query, Scan
from hedgerow.picture.facts import CurvePoint, evenly_spaced

_MOST_POINTS, _MOST_QUERIES, _SAMPLE_ROWS = 8, 60, 50_000


def learning_curve(
    tree: TreeLayout, sample: Sample, queries: Sequence[Query], table: str, described: Sequence[Predicate] = ()
) -> tuple[CurvePoint, ...]:
    """Return the points of the curve, estimated on a sample; none if the sample lacks what the tree divides by.

    `described`: the conditions whose outcomes the table's index has."""
    asked = evenly_spaced(queries, _MOST_QUERIES)
    predicates = [query.predicate(table) for query in asked]
    few = sample.part(_SAMPLE_ROWS)
    with suppress(LayoutError):
        others, _ = with_unseen_literals(predicates, few)
        scans = (Scan(table, p, q.columns(table), wanted=q.wanted(table)) for p, q in zip(others, asked, strict=True))
        unseen = [replace(q, scans=(scan,)) for q, scan in zip(asked, scans, strict=True) if others != predicates]
        few = _describing(few, [*tree.cuts, *described])
        points = []
        for levels in _spread(depth_of(tree)):
            grown = first_levels(tree, levels)
            reads = [query.rows_read for query in score_layout(grown, few, [*asked, *unseen], table).queries]
            seen, new = reads[: len(asked)], reads[len(asked) :]
            points.append(CurvePoint(levels, grown.blocks, fmean(seen), fmean(new) if new else None))
        return tuple(points)
    return ()


def _describing(sample: Sample, conditions: Sequence[Predicate]) -> Sample:
    """Return the sample with the outcomes of these conditions only, as far as they are known."""
    known = {p: bits for p, bits in sample.noting(conditions).rows.truths.items() if p in set(conditions)}
    return replace(sample, rows=sample.rows.with_truths(known))


def first_levels(tree: TreeLayout, levels: int) -> TreeLayout:
    """Return the tree without the cuts below its first levels; what was below a cut is one block.

    >>> from hedgerow.core.predicates.nodes import Compare, col, lit
    >>> cuts = tuple(Compare(col("x"), "<", lit(n)) for n in (1, 2, 3))
    >>> first_levels(TreeLayout(cuts, ((0, ~0, 1), (1, ~1, 2), (2, ~2, ~0))), 2).nodes
    ((0, -1, 1), (1, -2, -3))
    """
    level = _levels(tree)
    kept = [node for node in level if level[node] <= levels]
    place, blocks = {node: i for i, node in enumerate(kept)}, dict[int, int]()

    def child(old: int) -> int:
        return place[old] if old in place else ~blocks.setdefault(old, len(blocks))

    return TreeLayout(
        tree.cuts, tuple((cut, child(yes), child(no)) for cut, yes, no in map(tree.nodes.__getitem__, kept))
    )


def depth_of(tree: TreeLayout) -> int:
    return max(_levels(tree).values(), default=0)


def _levels(tree: TreeLayout) -> dict[int, int]:
    """Return the level of each node, parents first; the root has level 1."""
    level = {0: 1} if tree.nodes else {}
    for node in tree.top_down():
        level.update((kid, level[node] + 1) for kid in tree.nodes[node][1:] if kid >= 0)
    return level


def _spread(depth: int) -> list[int]:
    """Return some numbers of levels, from none to all, the first ones more densely.

    >>> _spread(3), _spread(40)
    ([0, 1, 2, 3], [0, 1, 2, 3, 6, 12, 22, 40])
    """
    steps = _MOST_POINTS - 1
    return (
        [0, *sorted({round(depth ** (i / (steps - 1))) for i in range(steps)})]
        if depth > steps
        else [*range(depth + 1)]
    )
