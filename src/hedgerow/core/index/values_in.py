"""Describe the values that a column may have in some blocks, as a condition; the other side of a join can use it.

blocks to open    o_orderkey between 1 and 400, and between 900 and 950
condition         l_orderkey >= 1 AND l_orderkey <= 400 OR l_orderkey >= 900 AND l_orderkey <= 950
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.core.arrays import Bools
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import (
    FALSE,
    TRUE,
    Column,
    Compare,
    In,
    Literal,
    Predicate,
    conjunction,
    disjunction,
)
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.pruning.block_stats import TermStats

MAX_VALUES, MAX_RANGES = 500, 20
# Floating-point numbers are not among these kinds, because NaN is in no range.
_KINDS = (
    *(kinds.INT, kinds.DECIMAL, kinds.STRING, kinds.BINARY),
    *(kinds.DATE, kinds.TIME, kinds.TIMESTAMP, kinds.TIMESTAMP_NTZ),
)


def values_in(chosen_blocks: Sequence[tuple[BlockIndex, Bools]], column: Column, join_column: Column) -> Predicate:
    """Return a condition on `join_column` that all values of `column` in the chosen blocks satisfy; TRUE if unknown."""
    conditions = []
    for index, chosen in chosen_blocks:
        if chosen.any():
            stats = index.blocks.terms.get(term_text(column))
            if stats is None or stats.type.kind not in _KINDS:
                return TRUE
            conditions.append(_values(stats, chosen, join_column))
    return disjunction(*conditions) if TRUE not in conditions else TRUE


def _values(stats: TermStats, chosen: Bools, column: Column) -> Predicate:
    chosen = chosen & stats.has_value
    if not chosen.any():
        return FALSE
    listed = _listed(stats, chosen)
    if listed is not None:
        return In(column, tuple(Literal(stats.type.kind, stats.values[code // 2]) for code in listed))
    return disjunction(*(_range(stats, low, high, column) for low, high in _ranges(stats, chosen)))


def _listed(stats: TermStats, chosen: Bools) -> list[int] | None:
    """Return the codes of all values, if they are known and not too many; else None."""
    if stats.sets is None:
        return None
    listed_codes: set[int] = set()
    for entry in np.flatnonzero(chosen).tolist():
        codes = stats.sets.of(entry)
        if codes is None:
            return None
        listed_codes.update(codes.tolist())
        if len(listed_codes) > MAX_VALUES:
            return None
    return sorted(listed_codes)


def _ranges(stats: TermStats, chosen: Bools) -> list[tuple[int, int]]:
    """Return ranges of codes that hold all values, in order; if there are many, ranges with small gaps are joined."""
    order = np.argsort(stats.low[chosen], kind="stable")
    low, high = stats.low[chosen][order], np.maximum.accumulate(stats.high[chosen][order])
    gaps = low[1:] - high[:-1]
    widest = np.sort(np.argsort(-gaps, kind="stable")[: MAX_RANGES - 1])
    starts = np.append(0, widest[gaps[widest] > 0] + 1)
    ends = np.append(starts[1:] - 1, len(low) - 1)
    return list(zip(low[starts].tolist(), high[ends].tolist(), strict=True))


def _range(stats: TermStats, low: int, high: int, column: Column) -> Predicate:
    """Return the range as a condition. An odd code is a value; an even one lies between two values or beyond all."""

    def literal(place: int) -> Literal:
        return Literal(stats.type.kind, stats.values[place])

    bounds: list[Predicate] = []
    if low % 2:
        bounds.append(Compare(column, ">=", literal(low // 2)))
    elif low > 0:
        bounds.append(Compare(column, ">", literal(low // 2 - 1)))
    if high % 2:
        bounds.append(Compare(column, "<=", literal(high // 2)))
    elif high < 2 * len(stats.values):
        bounds.append(Compare(column, "<", literal(high // 2)))
    return conjunction(*bounds)
