"""Order rows along a curve: the columns that queries filter on, their axes, and the ends of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2
from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout, Keys, edges_of, keys_of
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import Column, Term, terms_of
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.value_codes import NULL_CODE

KEY_BITS = 64  # of a key
CELL_BITS = 8  # of a key, below those that number the blocks: some hundred cells make up a block
LEAST_BITS = 8  # of an axis, if the key and the sample have enough


def filtered_terms(problem: Problem) -> dict[Term, float]:
    """The sample's terms on which queries filter and whose values have an order, the most frequent first; each with the
    weight of its queries."""
    known = {term_text(t) for t in problem.sample.rows.ranked}
    weights: dict[Term, float] = {}
    for p, weight in zip(problem.predicates, problem.weights, strict=True):
        for term in terms_of(p):
            if term_text(term) in known:
                weights[term] = weights.get(term, 0.0) + weight
    return dict(sorted(weights.items(), key=lambda item: (-item[1], term_text(item[0]))))


def named_terms(problem: Problem, names: Sequence[str]) -> list[Term]:
    """The sample's terms with these names; LayoutError if one is missing."""
    known = {term_text(t).lower(): t for t in problem.sample.rows.ranked}
    wanted = [term_text(Column(path_of(name))).lower() for name in names]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise LayoutError(f"the table has no column {', '.join(missing)} to order by; it has {', '.join(known)}")
    return [known[name] for name in wanted]


def axis_of(problem: Problem, term: Term, bits: int) -> Axis:
    """An axis of at most `bits` bits, with edges at the sample's quantiles; NULL has rank 0 for itself."""
    column = problem.sample.rows.ranks(term)
    values, places = column.values, column.places
    counts = np.bincount(places[places >= 0], minlength=len(values))
    has_null = bool((places == NULL_CODE).any())
    edges = edges_of(values, counts, (1 << bits) - 1 - has_null) if values else ()
    if has_null and values:
        edges = (values[0], *edges)
    return Axis(term, column.type.kind, edges)


def turns(axes: Sequence[Axis | BlockAxis]) -> list[int]:
    """The pattern of a Z-order: the axes contribute a bit in turn, until each has no more."""
    return [i for turn in range(max((a.bits for a in axes), default=0)) for i, a in enumerate(axes) if turn < a.bits]


def order(
    problem: Problem, axes: Sequence[Axis | BlockAxis], pattern: Sequence[int], curve: str = "bits"
) -> CurveLayout:
    """The layout that cuts the curve into blocks of at least `block_rows`."""
    if not axes:
        return CurveLayout((), (), ())
    rows = problem.sample.rows
    keys = keys_of([axis.ranks(rows) for axis in axes], [axis.bits for axis in axes], pattern, curve)
    return CurveLayout(tuple(axes), tuple(pattern), bounds_of(keys, problem.sample_block_rows), curve)


def bounds_of(keys: Keys, least: int) -> tuple[int, ...]:
    """The first key of each block but the first. A block ends as soon as it has `least` rows; equal keys stay together.

    If a frequent key would make a block more than twice as large, the block before or after it may have half the size.

    >>> bounds_of(np.array([1, 1, 1, 2, 3, 4, 5], np.uint64), 2)
    (2, 4)
    >>> bounds_of(np.array([1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3], np.uint64), 4)
    (2, 3)
    """
    values, counts = np.unique(keys, return_counts=True)
    return tuple(values[block_starts(np.cumsum(counts), least)].tolist())


@compiled_loop()
def block_starts(ends: Any, least: int) -> Any:
    """The runs of equal keys that begin a block, except the first; for the rule see `bounds_of`.

    `ends` are the ends of the runs, as numbers of rows.
    """
    found = np.empty(len(ends), np.int64)
    blocks, start, at = 0, 0, 0
    while True:
        while at < len(ends) and ends[at] < start + least:
            at += 1
        if 0 < at < len(ends) and ends[at] - start > 2 * least and 2 * least <= 4 * (ends[at - 1] - start):
            at -= 1
        if at + 1 >= len(ends):
            break
        rest = ends[-1] - ends[at]
        if 2 * rest < least and ends[-1] - start > 2 * least and at > 0 and 2 * (ends[at - 1] - start) >= least:
            at -= 1  # the rest is too small for a block of its own, and too large to add to this one
            rest = ends[-1] - ends[at]
        if 2 * rest < least or (rest < least and ends[-1] - start <= 2 * least):
            break
        start = ends[at]
        at += 1
        found[blocks] = at
        blocks += 1
    return found[:blocks]


def bits_each(problem: Problem, n: int) -> int:
    """The bits of each of n axes: some hundred cells a block, but no more than the sample can distinguish."""
    blocks = max(1, problem.sample.table_rows // problem.block_rows)
    enough = max(LEAST_BITS, ceil((log2(blocks) + CELL_BITS) / max(1, n)))
    return max(1, min(KEY_BITS // max(1, n), ceil(log2(len(problem.sample) + 1)), enough))
