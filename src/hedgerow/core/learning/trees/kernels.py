"""Compiled loops that grow a tree: they find the cut that lets the queries skip the most rows.

`clauses` are `ClauseArrays`: facts, fact_starts, needs, need_starts, weights. The facts of clause c are
`facts[fact_starts[c] : fact_starts[c + 1]]`; the clauses of query q are `needs[need_starts[q] : need_starts[q + 1]]`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop
from hedgerow.core.learning.cells.kernels import LEAST_GAIN

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled_loop()
def pack(truth: Any) -> Any:
    """Pack booleans, cuts x rows, into words of 64 rows."""
    cuts, rows = truth.shape
    found = np.zeros((cuts, (rows + 63) // 64), np.uint64)
    for c in range(cuts):
        for r in range(rows):
            if truth[c, r]:
                found[c, r >> 6] |= np.uint64(1) << np.uint64(r & 63)
    return found


@compiled_loop()
def count(bits: Any) -> Any:
    """How many bits of each row are set."""
    found = np.zeros(len(bits), np.int64)
    for k in range(len(bits)):
        for w in range(bits.shape[1]):
            x = bits[k, w]
            while x:
                x &= x - np.uint64(1)
                found[k] += 1
    return found


@compiled_loop()
def lacking(c: int, clauses: Any, some: Any, other: Any) -> float:
    """The share of a clause's facts that do not hold on a set of rows."""
    facts, starts = clauses[0], clauses[1]
    lacking_facts = 0
    for at in range(starts[c], starts[c + 1]):
        fact = facts[at]
        lacking_facts += not (other if fact & 1 else some)[fact >> 1]
    share: float = lacking_facts / (starts[c + 1] - starts[c])
    return share


@compiled_loop()
def lacks_all(c: int, clauses: Any, some: Any, other: Any) -> bool:
    """Whether none of a clause's facts holds on a set of rows."""
    facts, starts = clauses[0], clauses[1]
    for at in range(starts[c], starts[c + 1]):
        fact = facts[at]
        if (other if fact & 1 else some)[fact >> 1]:
            return False
    return True


@compiled_loop()
def skipped(queries: Any, clauses: Any, some: Any, other: Any, near: bool) -> float:
    """The weight of the queries that skip a set of rows, because one of their clauses cannot hold on it.

    With `near`, a query counts with the largest share of facts that one of its clauses lacks.
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
    """The open queries of a set of rows, and the cuts that occur in them.

    An open query reads the set, but might skip a part of it: not all of its clauses hold on every part.
    """
    facts, fact_starts, needs, need_starts, _ = clauses
    found = np.empty(len(queries), np.int64)
    asked = np.zeros(len(some), np.bool_)
    n = 0
    for q in queries:
        skips, certain = False, True
        for at in range(need_starts[q], need_starts[q + 1]):
            c = needs[at]
            possible, sure = False, False
            for k in range(fact_starts[c], fact_starts[c + 1]):
                cut = facts[k] >> 1
                holds = other[cut] if facts[k] & 1 else some[cut]
                fails = some[cut] if facts[k] & 1 else other[cut]
                possible |= holds
                sure |= holds and not fails
            skips |= not possible
            certain &= sure
        if not skips and not certain:
            found[n] = q
            n += 1
            for at in range(need_starts[q], need_starts[q + 1]):
                for k in range(fact_starts[needs[at]], fact_starts[needs[at] + 1]):
                    asked[facts[k] >> 1] = True
    return found[:n], asked


@compiled_loop()
def shortened(queries: Any, clauses: Any, some: Any, other: Any) -> Any:
    """The clauses of these queries, which are open, without what is the same on every part of the set of rows: facts
    that never hold, and clauses that hold everywhere."""
    facts, fact_starts, needs, need_starts, weights = clauses
    new_facts, new_fact_starts = np.empty(len(facts), facts.dtype), np.zeros(len(fact_starts), fact_starts.dtype)
    new_needs, new_need_starts = np.empty(len(needs), needs.dtype), np.zeros(len(queries) + 1, need_starts.dtype)
    number = np.full(len(fact_starts) - 1, -1)  # of a clause among the new ones; -2: it holds everywhere
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
def sides(
    bits: Any,
    n: int,
    c: int,
    cuts: Any,
    asked: Any,
    left_some: Any,
    left_other: Any,
    right_some: Any,
    right_other: Any,
) -> None:
    """Fill in `some` and `other` of all asked cuts, for the rows where cut c is TRUE (left) and where it is not."""
    words = bits.shape[1]
    last = _FULL >> np.uint64((64 - (n & 63)) & 63)
    for k in range(len(cuts)):
        if not asked[cuts[k]]:
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
    bits: Any,
    n: int,
    sizes: Any,
    cuts: Any,
    some: Any,
    other: Any,
    queries: Any,
    asked: Any,
    clauses: Any,
    least: int,
    shared: float,
    eps: float,
    near: bool,
    first: int,
    end: int,
) -> tuple[int, float]:
    """The cut with the largest gain among rows `first` to `end` of `bits`, and its gain; -1 if no cut gains.

    Both sides must have `least` rows, or one of them at most `shared`. With eps >= 0 the gain is divided by eps plus
    the split's entropy in bits. With `near`, a cut that removes one side of an OR gains too.
    """
    ls, lo, rs, ro = some.copy(), other.copy(), some.copy(), other.copy()
    now = n * skipped(queries, clauses, some, other, near)
    best, most = -1, LEAST_GAIN * n
    for c in range(first, end):
        left = sizes[c]
        right = n - left
        small = min(left, right)
        if n - small < least or (small < least and not 0 < small <= shared):
            continue
        sides(bits, n, c, cuts, asked, ls, lo, rs, ro)
        gain = left * skipped(queries, clauses, ls, lo, near) + right * skipped(queries, clauses, rs, ro, near) - now
        gain = by_entropy(gain, left / n, eps)
        if gain > most:
            best, most = c, gain
    return best, most


@compiled_loop()
def part(bits: Any, n: int, c: int, is_set: bool, kept: Any) -> Any:
    """The rows of the cuts `kept`, reduced to the table rows on which cut c is TRUE (or is not), packed again."""
    rows = np.empty(n, np.int64)
    m = 0
    for r in range(n):
        if ((bits[c, r >> 6] >> np.uint64(r & 63)) & np.uint64(1) != 0) == is_set:
            rows[m] = r
            m += 1
    found = np.zeros((len(kept), (m + 63) // 64), np.uint64)
    for k in range(len(kept)):
        own = bits[kept[k]]
        for i in range(m):
            r = rows[i]
            found[k, i >> 6] |= ((own[r >> 6] >> np.uint64(r & 63)) & np.uint64(1)) << np.uint64(i & 63)
    return found


@compiled_loop()
def by_entropy(gain: float, share: float, eps: float) -> float:
    """The gain of a cut with this share of the rows on the left, divided as `best_cut` says."""
    return gain if eps < 0 else gain / (eps - share * np.log2(share) - (1 - share) * np.log2(1 - share))
