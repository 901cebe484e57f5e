"""Order rows along a curve: the columns that queries filter on, their axes, and the ends of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import ceil, isfinite, log2
from typing import Any, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, BlockAxis, CurveLayout, Keys, edges_of, keys_of
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import Column, Term, terms_of
from hedgerow.core.predicates.schema import path_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import DATE, DECIMAL, FLOAT, INT, TIME, TIMESTAMP, TIMESTAMP_NTZ, Type
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.value_codes import NULL_CODE

Axes = Choice["ranks", "values"]
KEY_BITS = 64  # bits of a key
CELL_BITS = 8  # bits of a key below the bits that number the blocks: some hundred cells make up a block
LEAST_BITS = 8  # bits of an axis, if the key and the sample have enough


def filtered_terms(problem: Problem) -> dict[Term, float]:
    """Return the sample's terms that queries filter on, each with the weight of its queries; the most frequent first.

    Terms whose values have no known order are left out.
    """
    ranked = {term_text(t) for t in problem.sample.rows.ranked}
    weights: dict[Term, float] = {}
    for p, weight in zip(problem.predicates, problem.weights, strict=True):
        for term in terms_of(p):
            if term_text(term) in ranked:
                weights[term] = weights.get(term, 0.0) + weight
    return dict(sorted(weights.items(), key=lambda item: (-item[1], term_text(item[0]))))


def named_terms(problem: Problem, names: Sequence[str]) -> list[Term]:
    """Return the sample's terms with these names; raise LayoutError if one is missing."""
    ranked = {term_text(t).lower(): t for t in problem.sample.rows.ranked}
    texts = [term_text(Column(path_of(name))).lower() for name in names]
    missing = [text for text in texts if text not in ranked]
    if missing:
        raise LayoutError(f"the table has no column {', '.join(missing)} to order by; it has {', '.join(ranked)}")
    return [ranked[text] for text in texts]


def axis_of(problem: Problem, term: Term, bits: int, axes: Axes = "ranks") -> Axis:
    """Return an axis of at most `bits` bits, with edges at the sample's quantiles; only NULL has rank 0.

    `axes`: with "values", the edges of numbers and times are equally far apart, as those of binary digits are."""
    column = problem.sample.rows.ranks(term)
    values, places = column.values, column.places
    counts = np.bincount(places[places >= 0], minlength=len(values))
    has_null = bool((places == NULL_CODE).any())
    most = (1 << bits) - 1 - has_null
    edges: tuple[Value, ...] = ()
    if values:
        edges = edges_of(values, counts, most)
        if axes == "values":
            edges = _equal_widths(column.type, values[0], values[-1], most) or edges
    if has_null and values:
        edges = (values[0], *edges)
    return Axis(term, column.type.kind, edges)


def check_axes(axes: str) -> None:
    if axes not in get_args(Axes):
        raise LayoutError(f"axes must be {' or '.join(get_args(Axes))}, not {axes!r}")


def _equal_widths(kind: Type, least: Value, greatest: Value, most: int) -> tuple[Value, ...]:
    """Return at most so many values, equally far apart, above the least; none for texts and other values.

    >>> _equal_widths(Type("int"), 0, 15, 3), _equal_widths(Type("decimal", 3, 1), Decimal("0.5"), Decimal("0.8"), 3)
    ((4, 8, 12), (Decimal('0.6'), Decimal('0.7'), Decimal('0.8')))
    """
    if kind.kind == FLOAT:
        width = (greatest - least) / (most + 1)
        return tuple(sorted({least + i * width for i in range(1, most + 1)})) if isfinite(width) else ()
    if kind.kind not in (INT, DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ, DECIMAL):
        return ()
    units = 10**kind.scale if kind.kind == DECIMAL else 1
    first, count = int(least * units), int((greatest - least) * units) + 1
    steps = sorted({first + count * i // (most + 1) for i in range(1, most + 1)} - {first})
    return tuple(Decimal(step) / units for step in steps) if units > 1 else tuple(steps)


def round_robin_pattern(axes: Sequence[Axis | BlockAxis]) -> list[int]:
    """Return the pattern of a Z-order: the axes contribute a bit in turn, until none has bits left."""
    return [i for turn in range(max((a.bits for a in axes), default=0)) for i, a in enumerate(axes) if turn < a.bits]


def curve_layout(
    problem: Problem, axes: Sequence[Axis | BlockAxis], pattern: Sequence[int], curve: str = "bits"
) -> CurveLayout:
    """Return the layout that cuts the curve into blocks of at least `block_rows`."""
    if not axes:
        return CurveLayout((), (), ())
    rows = problem.sample.rows
    keys = keys_of([axis.ranks(rows) for axis in axes], [axis.bits for axis in axes], pattern, curve)
    return CurveLayout(tuple(axes), tuple(pattern), bounds_of(keys, problem.sample_block_rows), curve)


def bounds_of(keys: Keys, least: int) -> tuple[int, ...]:
    """Return the first key of each block but the first.

    A block ends as soon as it has `least` rows, but equal keys stay together. If a frequent key would make a block more
    than twice as large, the block before or after it may have half the size.

    >>> bounds_of(np.array([1, 1, 1, 2, 3, 4, 5], np.uint64), 2)
    (2, 4)
    >>> bounds_of(np.array([1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3], np.uint64), 4)
    (2, 3)
    """
    values, counts = np.unique(keys, return_counts=True)
    return tuple(values[block_starts(np.cumsum(counts), least)].tolist())


@compiled_loop()
def block_starts(ends: Any, least: int) -> Any:
    """Return the runs of equal keys that begin a block, except the first; for the rule see `bounds_of`.

    `ends` are the ends of the runs, as numbers of rows.
    """
    starts = np.empty(len(ends), np.int64)
    blocks, start, at = 0, 0, 0
    while True:
        while at < len(ends) and ends[at] < start + least:
            at += 1
        if 0 < at < len(ends) and ends[at] - start > 2 * least and 2 * least <= 4 * (ends[at - 1] - start):
            at -= 1
        if at + 1 >= len(ends):
            break
        remaining = ends[-1] - ends[at]
        if 2 * remaining < least and ends[-1] - start > 2 * least and at > 0 and 2 * (ends[at - 1] - start) >= least:
            at -= 1  # the remaining rows are too few for a block of their own, and too many to add to this one
            remaining = ends[-1] - ends[at]
        if 2 * remaining < least or (remaining < least and ends[-1] - start <= 2 * least):
            break
        start = ends[at]
        at += 1
        starts[blocks] = at
        blocks += 1
    return starts[:blocks]


def bits_each(problem: Problem, n: int) -> int:
    """Return the bits of each of n axes: for some hundred cells per block, but not more than the sample's rows need."""
    blocks = max(1, problem.sample.table_rows // problem.block_rows)
    enough = max(LEAST_BITS, ceil((log2(blocks) + CELL_BITS) / max(1, n)))
    return max(1, min(KEY_BITS // max(1, n), ceil(log2(len(problem.sample) + 1)), enough))
