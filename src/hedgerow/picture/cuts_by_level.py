"""Count the cuts of a tree by level, as in Fig. 9 of the qd-tree paper: for each column, and for each advanced cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hedgerow.core.layouts.tree import TreeLayout
from hedgerow.core.predicates.nodes import Predicate, columns_of
from hedgerow.core.predicates.sql_text import predicate_text, readable, term_text
from hedgerow.core.workload.candidate_cuts import is_advanced


def cuts_by_level(tree: TreeLayout) -> list[dict[str, int]]:
    """Return the number of cuts on each column, and of each advanced cut, for each level from the root on."""
    levels: list[dict[str, int]] = []
    here = [0] if tree.nodes else []
    while here:
        levels.append(dict(Counter(cut_name(tree.cuts[tree.nodes[node][0]]) for node in here)))
        here = [kid for node in here for kid in tree.nodes[node][1:] if kid >= 0]
    return levels


def cut_name(cut: Predicate) -> str:
    """Return the column that a cut is about; an advanced cut, or one about several columns, is named by its text.

    >>> from hedgerow.core.predicates.nodes import Compare, CompareTerms, col, lit
    >>> cut_name(Compare(col("x"), "<", lit(3))), cut_name(CompareTerms(col("x"), "<", col("y")))
    ('x', 'x < y')
    """
    columns = columns_of(cut)
    names_a_column = len(columns) == 1 and not is_advanced(cut)
    return readable(term_text(next(iter(columns))) if names_a_column else predicate_text(cut))


def totals(levels: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the number of cuts of each name on all levels, the most frequent first.

    >>> totals([{"x": 1}, {"y": 2}])
    {'y': 2, 'x': 1}
    """
    counts = Counter[str]()
    for level in levels:
        counts.update(level)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
