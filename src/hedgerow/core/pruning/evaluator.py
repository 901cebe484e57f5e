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

Of many entries, runs of neighbours are decided first: where a run has only one outcome, nothing looks inside.

The same function serves collected statistics and the regions of layouts, "may match" and "must match", blocks and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

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
from hedgerow.core.pruning.block_stats import (
    ANY,
    BIT,
    F_BIT,
    GROUP,
    N_BIT,
    NOT_BITS,
    T_BIT,
    Part,
    Selection,
    Stats,
    TermStats,
    has_several,
    looked_up,
)
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.noted_conditions import has_noted_conditions, narrow_by_noted_conditions
from hedgerow.core.pruning.value_codes import Codes, merge_values, recode_tables, thresholds
from hedgerow.core.pruning.words import outcomes_by_words

Connective = Callable[[Outcome, Outcome], Outcome]


def _table(f: Connective) -> bytes:
    """Return the 8 x 8 table that extends a connective from outcomes to sets of outcomes, filled up to 256 bytes."""
    table = np.zeros((32, 8), np.uint8)
    for a in range(8):
        for b in range(8):
            for x, x_bit in BIT.items():
                for y, y_bit in BIT.items():
                    if a & x_bit and b & y_bit:
                        table[a, b] |= BIT[f(x, y)]
    return table.tobytes()


_MAX_COMPARED = 8  # breaks; more of them are searched

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
    return _in_levels(normalise(p), stats, wanted)


def _in_levels(p: Predicate, stats: Stats, wanted: int) -> Bits:
    """Return the outcomes of groups of neighbours for their entries, and look only into groups that are not decided.

    The statistics of a group hold for all its rows, so its entries have no other outcomes."""
    if stats.groups is None:
        bits = _outcomes(p, stats, wanted, Part(len(stats)))
    else:
        of_groups = _in_levels(p, stats.groups, wanted)
        undecided = np.flatnonzero(has_several(of_groups) & (of_groups & wanted > 0))
        if len(undecided) * 2 > len(of_groups):
            bits = _outcomes(p, stats, wanted, Part(len(stats)))
        else:
            bits = np.repeat(of_groups, GROUP)[: len(stats)]
            at = (undecided[:, None] * GROUP + np.arange(GROUP)).reshape(-1)
            at = at[: np.searchsorted(at, len(stats))]
            if len(at):
                bits[at] = _outcomes(p, stats, wanted, Part(len(at), at))
    bits[stats.empty] = 0
    return bits


def _outcomes(p: Predicate, stats: Stats, wanted: int, part: Part) -> Bits:
    match p:
        case And(kids):
            bits = _together(kids, and3, stats, wanted, part)
        case Or(kids):
            bits = _together(kids, or3, stats, wanted, part)
        case Not(child):
            bits = NOT_BITS[_outcomes(child, stats, int(NOT_BITS[wanted]), part)]
        case Const(value):
            bits = np.full(part.size, BIT[value], np.uint8)
        case Compare() | In() | Prefix() | IsNull():
            bits = _by_steps(stepwise(p), stats, wanted, part)
        case CompareTerms():
            bits = _by_two_terms(p, stats, part)
        case Like():
            bits = outcomes_by_words(p, stats, part)
        case Opaque():
            bits = np.full(part.size, ANY, np.uint8)
        case _:
            assert_never(p)
    narrow_by_noted_conditions(p, bits, stats, wanted, part)
    return bits


def _together(kids: tuple[Predicate, ...], f: Connective, stats: Stats, wanted: int, part: Part) -> Bits:
    """Return the outcomes of the children under a connective; children about the same term become one step function."""
    wanted = (
        ANY if wanted & N_BIT else wanted
    )  # a NULL may come from any outcomes, TRUE only from TRUE, FALSE from FALSE
    groups = grouped(kids)
    bits = _one_by_one(groups, f, stats, wanted, part)
    if len(groups) < len(kids) and any(has_noted_conditions(k, stats) for k in kids):
        bits &= _one_by_one([(k,) for k in kids], f, stats, wanted, part)
    return bits


def _one_by_one(groups: Sequence[tuple[Predicate, ...]], f: Connective, stats: Stats, wanted: int, part: Part) -> Bits:
    """Return the outcomes of groups of predicates; each group is about the same term, or one predicate.

    Where only TRUE is wanted of an AND, entries that cannot be TRUE any more are left out."""
    bits = _of_group(groups[0], f, stats, wanted, part)
    for group in groups[1:]:
        left = np.flatnonzero(bits & T_BIT > 0) if f is and3 and wanted == T_BIT else None
        if left is None or 2 * len(left) > part.size:
            bits = _combined(f, bits, _of_group(group, f, stats, wanted, part))
        else:
            may_be = bits[left]
            bits = np.full(part.size, F_BIT | N_BIT, np.uint8)
            if len(left):
                bits[left] = _combined(f, may_be, _of_group(group, f, stats, wanted, part.some(left)))
    return bits


def _of_group(group: tuple[Predicate, ...], f: Connective, stats: Stats, wanted: int, part: Part) -> Bits:
    if len(group) == 1:
        return _outcomes(group[0], stats, wanted, part)
    return _by_steps(combined_stepwise(f, group), stats, wanted, part)


def _combined(f: Connective, a: Bits, b: Bits) -> Bits:
    return looked_up(_AND if f is and3 else _OR, (a << np.uint8(3)) | b)


# --- bounds, distinct sets and filters ------------------------------------------------------------


def _by_steps(function: Stepwise | None, stats: Stats, wanted: int, part: Part) -> Bits:
    """Return the outcomes of a step function, by all that is known of its term; all where the term is unknown."""
    if function is None or (term := _comparable(function.term, function.kind, stats)) is None:
        return np.full(part.size, ANY, np.uint8)
    steps, at = function.steps, part.at
    low, high = thresholds(term.values, steps.breaks)
    bits = _between(steps, low, high, term.low[at], term.high[at])
    if term.lacks_values:
        bits[~term.has_value[at]] = 0
    if term.sets is not None:
        _narrow_by_sets(bits, steps, low, term.sets, term.sets.set_of[at])
    if wanted & T_BIT and stats.filters:
        _narrow_by_filter(bits, function, stats, at)
    if term.has_nulls:
        bits[term.may_null[at]] |= BIT[steps.on_null]
    if term.has_nan:
        bits[term.nan[at]] |= BIT[steps.at(NAN)] if function.kind else BIT[steps.outcomes[0]]
    return bits


def _comparable(term: Term, kind: str | None, stats: Stats) -> TermStats | None:
    """Return the term's statistics, if their values and the literals have the same kind."""
    term_stats = stats.terms.get(term_text(term))
    return term_stats if term_stats is not None and kind in (None, term_stats.type.kind) else None


def _between(steps: Steps, low: Codes, high: Codes, first: Codes, last: Codes) -> Bits:
    """Return the outcomes of all steps from the step of the minimum to the step of the maximum.

    A run of equal steps is among them if the maximum is not before it, and the minimum not after it."""
    if not len(low):
        return np.full(len(first), BIT[steps.outcomes[0]], np.uint8)
    if len(low) > _MAX_COMPARED:
        return _between_many(steps, np.searchsorted(low, first, "right"), np.searchsorted(high, last, "right"))
    bits, start = np.zeros(len(first), np.uint8), 0
    for outcome, run in groupby(steps.outcomes):
        end = start + len(list(run))
        is_reached = last >= high[start - 1] if start else None
        if end <= len(low):
            is_left = first < low[end - 1]
            is_reached = is_left if is_reached is None else is_reached & is_left
        bits |= np.uint8(BIT[outcome]) if is_reached is None else is_reached.view(np.uint8) * np.uint8(BIT[outcome])
        start = end
    return bits


def _between_many(steps: Steps, start: npt.NDArray[np.intp], end: npt.NDArray[np.intp]) -> Bits:
    bits, n = np.zeros(len(start), np.uint8), len(steps.outcomes)
    for outcome in set(steps.outcomes):
        # For each step: the next step, itself included, with this outcome; n if there is none.
        places = [i if o is outcome else n for i, o in enumerate(steps.outcomes)]
        following = np.minimum.accumulate(places[::-1])[::-1]
        bits += (following[start] <= end).view(np.uint8) * np.uint8(BIT[outcome])
    return bits


def _narrow_by_sets(bits: Bits, steps: Steps, low: Codes, sets: DistinctSets, set_of: Codes) -> None:
    """Remove from `bits`, in place, the outcomes that the function has on no value of an entry's set."""
    undecided = np.flatnonzero(has_several(bits) & (set_of >= 0))
    if not len(undecided):
        return
    is_needed = np.zeros(len(sets.offsets) - 1, bool)
    is_needed[set_of[undecided]] = True
    codes, sizes = sets.codes_of(np.flatnonzero(is_needed))
    bit_of_step = np.array([BIT[o] for o in steps.outcomes], np.uint8)
    # No set is empty here: undecided entries have values.
    bits_of_set = np.bitwise_or.reduceat(bit_of_step[_steps_passed(low, codes)], np.cumsum(sizes) - sizes)
    bits[undecided] &= bits_of_set[(np.cumsum(is_needed) - 1)[set_of[undecided]]]


def _narrow_by_filter(bits: Bits, function: Stepwise, stats: Stats, at: Selection) -> None:
    """Remove TRUE from `bits`, in place, where the function is TRUE only at values that the entry does not hold."""
    value_filter, points = stats.filters.get(term_text(function.term)), true_points(function.steps)
    if value_filter is not None and function.kind is not None and points and (bits & T_BIT).any():
        bits[~value_filter.may_hold(function.kind, points)[at]] &= F_BIT | N_BIT


def _steps_passed(breaks: Codes, codes: Codes) -> npt.NDArray[np.integer[Any]]:
    """Return for each code the number of breaks at or below it."""
    if len(breaks) > _MAX_COMPARED:
        return np.searchsorted(breaks, codes, side="right")
    passed = np.zeros(len(codes), np.uint8)
    for b in breaks:
        passed += codes >= b
    return passed


def _by_two_terms(p: CompareTerms, stats: Stats, part: Part) -> Bits:
    a, b = stats.terms.get(term_text(p.left)), stats.terms.get(term_text(p.right))
    if a is None or b is None or a.type.kind != b.type.kind:
        return np.full(part.size, ANY, np.uint8)
    key = ("joint", term_text(p.left), term_text(p.right))
    if key not in stats.memo:
        stats.memo[key] = _joint(a, b)
    at = part.at
    bits: Bits = _compare_spans(p.op, *(codes[at] for codes in stats.memo[key]))
    a_valued, b_valued, a_nan, b_nan = a.has_value[at], b.has_value[at], a.nan[at], b.nan[at]
    bits[~(a_valued & b_valued)] = 0
    bits[a.may_null[at] | b.may_null[at]] |= N_BIT
    for x, y, entries in ((1, 0, a_nan & b_valued), (0, 1, a_valued & b_nan), (1, 1, a_nan & b_nan)):
        # 1 stands for NaN and 0 for a value: NaN is the greatest, and equals itself.
        bits[entries] |= BIT[OPS[p.op](x, y)]
    return bits


def _joint(a: TermStats, b: TermStats) -> tuple[Codes, Codes, Codes, Codes]:
    """Return the lower and upper bounds of both terms, as codes over one common list of values."""
    values, places = merge_values([a.values, b.values])
    spans: list[Codes] = []
    for term, places_of_term in zip((a, b), places, strict=True):
        low, high = recode_tables(places_of_term, len(values))
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
