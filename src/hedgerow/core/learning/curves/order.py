"""Shared parts of the curve learners: the columns that queries filter on, their axes, and the ends of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2

import numpy as np

from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout, Keys, edges_of, keys_of
from hedgerow.core.learning.curves.kernels import block_starts
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import And, Column, Predicate, Term, conjunction, terms_of
from hedgerow.core.predicates.normal_form import grouped
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import Stepwise, stepwise
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.value_codes import NAN_CODE, NULL_CODE

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


def selectivity(problem: Problem, term: Term) -> float:
    """The mean share of rows that pass the queries' conditions on this term alone; without a condition it is 1."""
    column = problem.sample.rows.ranks(term)
    values, places = column.values, column.places
    up_to = np.cumsum([0, *np.bincount(places[places >= 0], minlength=len(values))])
    nulls, nans = ((places == code).sum() for code in (NULL_CODE, NAN_CODE))

    def share(p: Predicate) -> float:
        condition = _condition_on(p, term)
        if condition is None or condition.kind not in (None, column.type.kind):
            return 1.0
        steps = condition.steps
        passing = sum(up_to[b] - up_to[a] for a, b in steps.where_true(values)) + nulls * (steps.on_null is True)
        if nans:
            passing += nans * ((steps.at(NAN) if condition.kind else steps.outcomes[0]) is True)
        return float(passing) / max(1, len(places))

    total = sum(weight * share(p) for p, weight in zip(problem.predicates, problem.weights, strict=True))
    return total / (sum(problem.weights) or 1.0)


def _condition_on(p: Predicate, term: Term) -> Stepwise | None:
    """The part of the predicate that is about this term alone."""
    kids = p.children if isinstance(p, And) else (p,)
    conditions = (stepwise(conjunction(*group)) for group in grouped(kids))
    return next((c for c in conditions if c is not None and c.term == term), None)


def named_terms(problem: Problem, names: Sequence[str]) -> list[Term]:
    """The sample's terms with these names; LayoutError if one is missing."""
    known = {term_text(t).lower(): t for t in problem.sample.rows.ranked}
    wanted = [term_text(Column(path_of(name))).lower() for name in names]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise LayoutError(f"the table has no column {', '.join(missing)} to order by; it has {', '.join(known)}")
    return [known[name] for name in wanted]


def axes_of(problem: Problem, names: Sequence[str], most: int) -> list[Axis]:
    """An axis for each named term, or for the `most` that queries filter on most often."""
    chosen = named_terms(problem, names) or list(filtered_terms(problem))[:most]
    return [axis_of(problem, term, bits_each(problem, len(chosen))) for term in chosen]


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


def ranged(problem: Problem, names: Sequence[str] = ()) -> CurveLayout:
    """A sort by the named columns, or by the column whose conditions let the fewest rows through on average."""
    terms = named_terms(problem, names)
    if not terms:
        terms = sorted(filtered_terms(problem), key=lambda t: selectivity(problem, t))[:1]
    axes = [axis_of(problem, term, bits_each(problem, len(terms))) for term in terms]
    return order(problem, axes, [i for i, axis in enumerate(axes) for _ in range(axis.bits)])


def woven(problem: Problem, names: Sequence[str] = (), most: int = 3) -> CurveLayout:
    """A Z-order: the axes contribute a bit in turn."""
    axes = axes_of(problem, names, most)
    return order(problem, axes, turns(axes))


def along_hilbert(problem: Problem, names: Sequence[str] = (), most: int = 3) -> CurveLayout:
    """A Hilbert curve through the axes."""
    axes = axes_of(problem, names, most)
    bits = max((axis.bits for axis in axes), default=0)
    return order(problem, axes, list(range(len(axes))) * bits, "hilbert")


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


def bits_each(problem: Problem, n: int) -> int:
    """The bits of each of n axes: some hundred cells a block, but no more than the sample can distinguish."""
    blocks = max(1, problem.sample.table_rows // problem.block_rows)
    enough = max(LEAST_BITS, ceil((log2(blocks) + CELL_BITS) / max(1, n)))
    return max(1, min(KEY_BITS // max(1, n), ceil(log2(len(problem.sample) + 1)), enough))


def interleaved(allocation: Sequence[int]) -> tuple[int, ...]:
    """The pattern of Gao et al., Definition 2, for these numbers of bits.

    In each round a term contributes its bits divided by the fewest bits of any term, rounded down, or all it has left.

    >>> interleaved([2, 5, 0])
    (0, 1, 1, 0, 1, 1, 1)
    """
    least = min((bits for bits in allocation if bits), default=1)
    left = list(allocation)
    pattern: list[int] = []
    while any(left):
        for i, bits in enumerate(allocation):
            count = min(bits // least, left[i])
            pattern += [i] * count
            left[i] -= count
    return tuple(pattern)


def shortened(axes: Sequence[Axis], pattern: Sequence[int]) -> tuple[list[Axis], list[int]]:
    """Drop axes that are not in the pattern, and edges that its bits cannot distinguish; the keys stay the same."""
    used = sorted(set(pattern))
    kept = []
    for i in used:
        axis = axes[i]
        step = 1 << max(0, axis.bits - list(pattern).count(i))  # so many ranks have the same key
        kept.append(replace(axis, edges=axis.edges[step - 1 :: step]))
    return kept, [used.index(i) for i in pattern]
