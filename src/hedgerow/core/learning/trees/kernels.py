"""Compiled loops that grow a tree: they find the cut that lets the queries skip the most rows.

A query is an AND of clauses, and a clause is an OR of facts (`core/workload/query_clauses`). Two masks of cuts describe
a set of rows: `some[i]` says that cut i is TRUE on some row, `other[i]` that it is not TRUE on some row. Fact 2 i holds
if `some[i]`, and fact 2 i + 1 if `other[i]`.

    clauses, as `ClauseArrays`    facts, fact_starts, needs, need_starts, weights
    the clauses of query q        needs[need_starts[q] : need_starts[q + 1]]
    the facts of clause c         facts[fact_starts[c] : fact_starts[c + 1]]
    node                          an `OpenNode`
    sides                         `some` and `other` of the left side, then of the right side
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.cells.kernels import LEAST_GAIN

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


class CutRule(NamedTuple):
    """The cuts that are allowed, and the measure of their gain.

    Both sides must have `least` rows, or one of them at most `shared`. With eps >= 0 the gain is divided by eps plus
    the split's entropy in bits.
    """

    least: int
    shared: float
    eps: float


@compiled_loop()
def lacking(c: int, clauses: Any, some: Any, other: Any) -> float:
    """Return the share of a clause's facts that do not hold on a set of rows."""
    facts, starts = clauses[0], clauses[1]
    lacking_facts = 0
    for at in range(starts[c], starts[c + 1]):
        fact = facts[at]
        lacking_facts += not (other if fact & 1 else some)[fact >> 1]
    share: float = lacking_facts / (starts[c + 1] - starts[c])
    return share


@compiled_loop()
def lacks_all(c: int, clauses: Any, some: Any, other: Any) -> bool:
    """True if none of a clause's facts holds on a set of rows."""
    facts, starts = clauses[0], clauses[1]
    for at in range(starts[c], starts[c + 1]):
        fact = facts[at]
        if (other if fact & 1 else some)[fact >> 1]:
            return False
    return True


@compiled_loop()
def skipped(queries: Any, clauses: Any, some: Any, other: Any, near: bool) -> float:
    """Return the total weight of the queries that skip a set of rows: no fact of one of their clauses holds there.

    With `near`, a query counts in part: by the share of facts that do not hold, in the clause where it is largest.
    """
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    total = 0.0
    for q in queries:
        most = 0.0
        for at in range(starts[q], starts[q + 1]):
            if near:
                most = max(most, lacking(needs[at], clauses, some, other))
            elif lacks_all(needs[at], clauses, some, other):
                most = 1.0
            if most == 1.0:
                break
        total += weights[q] * most
    return total


@compiled_loop()
def open_queries(queries: Any, clauses: Any, some: Any, other: Any) -> Any:
    """Return the open queries of a set of rows, and the cuts that occur in them.

    An open query reads the set, but might skip a part of it where no fact of one of its clauses holds.
    """
    facts, fact_starts, needs, need_starts, _ = clauses
    still_open = np.empty(len(queries), np.int64)
    used = np.zeros(len(some), np.bool_)
    n = 0
    for q in queries:
        skips, certain = False, True
        for at in range(need_starts[q], need_starts[q + 1]):
            c = needs[at]
            possible, always = False, False
            for k in range(fact_starts[c], fact_starts[c + 1]):
                cut = facts[k] >> 1
                holds = other[cut] if facts[k] & 1 else some[cut]
                fails = some[cut] if facts[k] & 1 else other[cut]
                possible |= holds
                always |= holds and not fails
            skips |= not possible
            certain &= always
        if not skips and not certain:
            still_open[n] = q
            n += 1
            for at in range(need_starts[q], need_starts[q + 1]):
                for k in range(fact_starts[needs[at]], fact_starts[needs[at] + 1]):
                    used[facts[k] >> 1] = True
    return still_open[:n], used


@compiled_loop()
def shortened(queries: Any, clauses: Any, some: Any, other: Any) -> Any:
    """Return the clauses of these open queries, without facts that never hold and clauses that always hold.

    Neither can change on a part of the set of rows.
    """
    facts, fact_starts, needs, need_starts, weights = clauses
    new_facts, new_fact_starts = np.empty(len(facts), facts.dtype), np.zeros(len(fact_starts), fact_starts.dtype)
    new_needs, new_need_starts = np.empty(len(needs), needs.dtype), np.zeros(len(queries) + 1, need_starts.dtype)
    number = np.full(len(fact_starts) - 1, -1)  # the new number of a clause; -2: it always holds
    n = m = clause = 0
    for i, q in enumerate(queries):
        for at in range(need_starts[q], need_starts[q + 1]):
            c = needs[at]
            if number[c] == -1:
                number[c] = clause
                first = m
                for k in range(fact_starts[c], fact_starts[c + 1]):
                    cut = facts[k] >> 1
                    if not (other[cut] if facts[k] & 1 else some[cut]):
                        continue
                    if not (some[cut] if facts[k] & 1 else other[cut]):
                        number[c] = -2
                        break
                    new_facts[m] = facts[k]
                    m += 1
                if number[c] == -2:
                    m = first
                else:
                    clause += 1
                    new_fact_starts[clause] = m
            if number[c] >= 0:
                new_needs[n] = number[c]
                n += 1
        new_need_starts[i + 1] = n
    return new_facts[:m], new_fact_starts[: clause + 1], new_needs[:n], new_need_starts, weights[queries]


@compiled_loop()
def fill_facts(node: Any, c: int, used: Any, sides: Any) -> None:
    """Fill in `sides`, for all used cuts, as cut c splits the rows: cut c is TRUE on all rows of the left side."""
    bits, n, cuts = node.bits, node.rows, node.cuts
    left_some, left_other, right_some, right_other = sides
    words = bits.shape[1]
    last = _FULL >> np.uint64((64 - (n & 63)) & 63)
    for k in range(len(cuts)):
        if not used[cuts[k]]:
            continue
        a = b = d = e = np.uint64(0)
        for w in range(words):
            x, y = bits[c, w], bits[k, w]
            inside = last if w == words - 1 else _FULL
            a |= x & y
            b |= x & ~y
            d |= ~x & y & inside
            e |= ~x & ~y & inside
            if a and b and d and e:
                break
        cut = cuts[k]
        left_some[cut], left_other[cut] = a != 0, b != 0
        right_some[cut], right_other[cut] = d != 0, e != 0


@compiled_loop(nogil=True)
def best_cut(
    node: Any, sizes: Any, queries: Any, clauses: Any, rule: Any, near: bool, cuts: slice
) -> tuple[int, float]:
    """Return the place of the cut with the largest gain among these `cuts`, and its gain; -1 if no cut gains.

    `sizes` has the number of rows on which each cut is TRUE; `rule` is a `CutRule`. With `near`, a cut that removes one
    side of an OR gains too.
    """
    n = node.rows
    ls, lo, rs, ro = node.some.copy(), node.other.copy(), node.some.copy(), node.other.copy()
    before = n * skipped(queries, clauses, ls, lo, near)
    best, best_gain = -1, LEAST_GAIN * n
    for c in range(cuts.start, cuts.stop):
        left = sizes[c]
        right = n - left
        small = min(left, right)
        if n - small < rule.least or (small < rule.least and not 0 < small <= rule.shared):
            continue
        fill_facts(node, c, node.used, (ls, lo, rs, ro))
        gain = left * skipped(queries, clauses, ls, lo, near) + right * skipped(queries, clauses, rs, ro, near) - before
        gain = by_entropy(gain, left / n, rule.eps)
        if gain > best_gain:
            best, best_gain = c, gain
    return best, best_gain


@compiled_loop()
def select_rows(bits: Any, rows: Any) -> Any:
    """Return the bits of these rows, packed again."""
    selected = np.zeros((len(bits), (len(rows) + 63) // 64), np.uint64)
    for i in range(len(bits)):
        row_bits = bits[i]
        for k in range(len(rows)):
            r = rows[k]
            selected[i, k >> 6] |= ((row_bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1)) << np.uint64(k & 63)
    return selected


@compiled_loop()
def by_entropy(gain: float, share: float, eps: float) -> float:
    """Return the gain of a cut with this share of the rows on the left, divided as `CutRule` says."""
    return gain if eps < 0 else gain / (eps - share * np.log2(share) - (1 - share) * np.log2(1 - share))
