"""Evaluate a predicate on statistics: find its possible outcomes, TRUE, FALSE and NULL, on the rows of each entry.

The answer is a set of three bits per entry; an entry is skipped only if TRUE is not in its set. Every source of
evidence can only remove bits, so the sources are intersected, and an unknown removes nothing:

    bounds        x > 7          min------max             no TRUE
                                              7
    distinct set  x = 5          {3, 8}                   no TRUE, though 3 < 5 < 8
    filter        x = 5          no row has 5's bits      no TRUE; see `value_filter`
    words         x LIKE '%a%'   no word has an a         no TRUE
    conditions    x < 5          "x < 10": never TRUE     no TRUE, since x < 5 implies x < 10
    structure     p AND q        sets combined value by value

The same function serves collected statistics and the regions of layouts, "may match" and "must match", blocks and rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bits, Bools
from hedgerow.core.errors import assert_never
from hedgerow.core.predicates.nodes import (
    And,
    Compare,
    CompareTerms,
    Const,
    In,
    IsNull,
    Like,
    Not,
    Opaque,
    Or,
    Predicate,
    Prefix,
    Term,
)
from hedgerow.core.predicates.normal_form import grouped, normalise
from hedgerow.core.predicates.row_truth import OPS
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.step_functions import (
    Outcome,
    Steps,
    Stepwise,
    and3,
    combined_stepwise,
    or3,
    stepwise,
    true_points,
)
from hedgerow.core.predicates.values import NAN
from hedgerow.core.pruning.block_stats import ANY, BIT, F_BIT, HAS_SEVERAL, N_BIT, NOT_BITS, T_BIT, Stats, TermStats
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.noted_conditions import has_noted_conditions, narrow_by_noted_conditions
from hedgerow.core.pruning.value_codes import Codes, merge_values, recode_tables, thresholds
from hedgerow.core.pruning.words import outcomes_by_words

Connective = Callable[[Outcome, Outcome], Outcome]


def _table(f: Connective) -> Bits:
    """Return the 8 x 8 table, flat, that extends a connective from outcomes to sets of outcomes."""
    table = np.zeros((8, 8), np.uint8)
    for a in range(8):
        for b in range(8):
            for x, x_bit in BIT.items():
                for y, y_bit in BIT.items():
                    if a & x_bit and b & y_bit:
                        table[a, b] |= BIT[f(x, y)]
    return table.reshape(-1)


_AND, _OR = _table(and3), _table(or3)


def may_match(p: Predicate, stats: Stats) -> Bools:
    """Return for each entry whether it may contain a row on which `p` is TRUE; only these need to be opened.

    >>> import pyarrow as pa
    >>> from hedgerow.core.predicates.nodes import col, lit
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([1, 2, 8, 9])}, entry=[0, 0, 1, 1], entries=2)
    >>> may_match(Compare(col("x"), ">", lit(5)), stats)
    array([False,  True])
    """
    matches: Bools = possible_outcomes(p, stats, T_BIT) & T_BIT > 0
    return matches


def must_match(p: Predicate, stats: Stats) -> Bools:
    """Return for each entry whether `p` is TRUE on all its rows."""
    matches: Bools = possible_outcomes(p, stats) & (F_BIT | N_BIT) == 0
    return matches


def possible_outcomes(p: Predicate, stats: Stats, wanted: int = ANY) -> Bits:
    """Return for each entry the set of outcomes that `p` may have on its rows; empty if the entry has no rows.

    Only the `wanted` outcomes are excluded where possible. Others may stay in the set, because excluding takes time.
    """
    bits = _outcomes(normalise(p), stats, wanted)
    bits[stats.rows == 0] = 0
    return bits


def _outcomes(p: Predicate, stats: Stats, wanted: int) -> Bits:
    match p:
        case And(kids):
            bits = _together(kids, and3, stats, wanted)
        case Or(kids):
            bits = _together(kids, or3, stats, wanted)
        case Not(child):
            bits = NOT_BITS[_outcomes(child, stats, int(NOT_BITS[wanted]))]
        case Const(value):
            bits = np.full(len(stats), BIT[value], np.uint8)
        case Compare() | In() | Prefix() | IsNull():
            bits = _by_steps(stepwise(p), stats, wanted)
        case CompareTerms():
            bits = _by_two_terms(p, stats)
        case Like():
            bits = outcomes_by_words(p, stats)
        case Opaque():
            bits = np.full(len(stats), ANY, np.uint8)
        case _:
            assert_never(p)
    narrow_by_noted_conditions(p, bits, stats, wanted)
    return bits


def _together(kids: tuple[Predicate, ...], f: Connective, stats: Stats, wanted: int) -> Bits:
    """Return the outcomes of the children under a connective; children about the same term become one step function."""
    wanted = (
        ANY if wanted & N_BIT else wanted
    )  # a NULL may come from any outcomes, TRUE only from TRUE, FALSE from FALSE
    parts = [
        _outcomes(g[0], stats, wanted) if len(g) == 1 else _by_steps(combined_stepwise(f, g), stats, wanted)
        for g in grouped(kids)
    ]
    bits = _combined(f, parts)
    if len(parts) < len(kids) and any(has_noted_conditions(k, stats) for k in kids):
        bits &= _combined(f, [_outcomes(k, stats, wanted) for k in kids])
    return bits


def _combined(f: Connective, parts: list[Bits]) -> Bits:
    table = _AND if f is and3 else _OR
    return reduce(lambda a, b: table[a * 8 + b], parts)


# --- bounds, distinct sets and filters ------------------------------------------------------------


def _by_steps(function: Stepwise | None, stats: Stats, wanted: int) -> Bits:
    """Return the outcomes of a step function, by all that is known of its term; all where the term is unknown."""
    if function is None or (term := _comparable(function.term, function.kind, stats)) is None:
        return np.full(len(stats), ANY, np.uint8)
    steps = function.steps
    low, high = thresholds(term.values, steps.breaks)
    bits = _between(steps, low, high, term.low, term.high)
    if not term.has_value.all():
        bits[~term.has_value] = 0
    if term.sets is not None:
        _narrow_by_sets(bits, steps, low, term.sets)
    if wanted & T_BIT and stats.filters:
        _narrow_by_filter(bits, function, stats)
    if term.may_null.any():
        bits[term.may_null] |= BIT[steps.on_null]
    if term.nan.any():
        bits[term.nan] |= BIT[steps.at(NAN)] if function.kind else BIT[steps.outcomes[0]]
    return bits


def _comparable(term: Term, kind: str | None, stats: Stats) -> TermStats | None:
    """Return the term's statistics, if their values and the literals have the same kind."""
    term_stats = stats.terms.get(term_text(term))
    return term_stats if term_stats is not None and kind in (None, term_stats.type.kind) else None


def _between(steps: Steps, low: Codes, high: Codes, first: Codes, last: Codes) -> Bits:
    """Return the outcomes of all steps from the step of the minimum to the step of the maximum."""
    if not len(low):
        return np.full(len(first), BIT[steps.outcomes[0]], np.uint8)
    start, end = _steps_passed(low, first), _steps_passed(high, last)
    bits = np.zeros(len(first), np.uint8)
    n = len(steps.outcomes)
    for outcome in set(steps.outcomes):
        # For each step: the next step, itself included, with this outcome; n if there is none.
        places = [i if o is outcome else n for i, o in enumerate(steps.outcomes)]
        following = np.minimum.accumulate(places[::-1])[::-1]
        bits += (following[start] <= end).view(np.uint8) * np.uint8(BIT[outcome])
    return bits


def _narrow_by_sets(bits: Bits, steps: Steps, low: Codes, sets: DistinctSets) -> None:
    """Remove from `bits`, in place, the outcomes that the function has on no value of an entry's set."""
    undecided = np.flatnonzero(HAS_SEVERAL[bits] & (sets.set_of >= 0))
    if not len(undecided):
        return
    is_needed = np.zeros(len(sets.offsets) - 1, bool)
    is_needed[sets.set_of[undecided]] = True
    needed = np.flatnonzero(is_needed)
    starts, sizes = sets.offsets[needed], sets.offsets[needed + 1] - sets.offsets[needed]
    ends = np.cumsum(sizes)
    codes = sets.codes[np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)]
    bit_of_step = np.array([BIT[o] for o in steps.outcomes], np.uint8)
    # No set is empty here: undecided entries have values.
    bits_of_set = np.bitwise_or.reduceat(bit_of_step[_steps_passed(low, codes)], ends - sizes)
    bits[undecided] &= bits_of_set[(np.cumsum(is_needed) - 1)[sets.set_of[undecided]]]


def _narrow_by_filter(bits: Bits, function: Stepwise, stats: Stats) -> None:
    """Remove TRUE from `bits`, in place, where the function is TRUE only at values that the entry does not hold."""
    value_filter, points = stats.filters.get(term_text(function.term)), true_points(function.steps)
    if value_filter is not None and function.kind is not None and points and (bits & T_BIT).any():
        bits[~value_filter.may_hold(function.kind, points)] &= F_BIT | N_BIT


def _steps_passed(breaks: Codes, codes: Codes) -> npt.NDArray[np.intp]:
    """Return for each code the number of breaks at or below it."""
    if len(breaks) > 8:
        return np.searchsorted(breaks, codes, side="right")
    passed = np.zeros(len(codes), np.intp)
    for b in breaks:
        passed += codes >= b
    return passed


def _by_two_terms(p: CompareTerms, stats: Stats) -> Bits:
    a, b = stats.terms.get(term_text(p.left)), stats.terms.get(term_text(p.right))
    if a is None or b is None or a.type.kind != b.type.kind:
        return np.full(len(stats), ANY, np.uint8)
    key = ("joint", term_text(p.left), term_text(p.right))
    if key not in stats.memo:
        stats.memo[key] = _joint(a, b)
    bits: Bits = _compare_spans(p.op, *stats.memo[key])
    bits[~(a.has_value & b.has_value)] = 0
    bits[a.may_null | b.may_null] |= N_BIT
    for x, y, entries in ((1, 0, a.nan & b.has_value), (0, 1, a.has_value & b.nan), (1, 1, a.nan & b.nan)):
        # 1 stands for NaN and 0 for a value: NaN is the greatest, and equals itself.
        bits[entries] |= BIT[OPS[p.op](x, y)]
    return bits


def _joint(a: TermStats, b: TermStats) -> tuple[Codes, Codes, Codes, Codes]:
    """Return the lower and upper bounds of both terms, as codes over one common list of values."""
    values = merge_values(a.values, b.values)
    spans: list[Codes] = []
    for term in (a, b):
        low, high = recode_tables(term.values, values)
        spans += [low[np.minimum(term.low, len(low) - 1)], high[np.minimum(term.high, len(high) - 1)]]
    return spans[0], spans[1], spans[2], spans[3]


def _compare_spans(op: str, a_low: Codes, a_high: Codes, b_low: Codes, b_high: Codes) -> Bits:
    """Return the outcomes that `a op b` can have on each entry, from the codes of the bounds of a and b.

    An even code is a gap between known values. Two values in the same gap can be equal or in either order, so equal
    even codes exclude no outcome.
    """

    def never_less(x_low: Codes, y_high: Codes) -> Bools:  # x < y for no pair:  y......y  x......x
        never: Bools = x_low + (x_low % 2 == 1) > y_high
        return never

    def always_less(x_high: Codes, y_low: Codes) -> Bools:  #                    x......x  y......y
        always: Bools = x_high < y_low
        return always

    match op:
        case "<":
            no_true, no_false = never_less(a_low, b_high), always_less(a_high, b_low)
        case ">":
            no_true, no_false = never_less(b_low, a_high), always_less(b_high, a_low)
        case "<=":
            no_true, no_false = always_less(b_high, a_low), never_less(b_low, a_high)
        case ">=":
            no_true, no_false = always_less(a_high, b_low), never_less(a_low, b_high)
        case _:
            apart = always_less(a_high, b_low) | always_less(b_high, a_low)
            same = (a_low == a_high) & (b_low == b_high) & (a_low == b_low) & (a_low % 2 == 1)
            no_true, no_false = (apart, same) if op == "=" else (same, apart)
    bits = np.full(len(a_low), T_BIT | F_BIT, np.uint8)
    bits[no_true] &= F_BIT
    bits[no_false] &= T_BIT
    return bits
