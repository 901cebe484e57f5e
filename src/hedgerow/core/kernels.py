"""The loops of learning that whole arrays cannot say well, compiled by numba and kept for the next process.

`clauses` is what `Clauses.lists` gives: facts, fact_starts, needs, need_starts, weights. The facts of clause c are
`facts[fact_starts[c] : fact_starts[c + 1]]`, the clauses of query q `needs[need_starts[q] : need_starts[q + 1]]`.
`blocks` are rows, holds, may, weight: of each block its rows, which clauses hold, which queries cannot skip it, and
the weight of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True)
def pack(truth: Any) -> Any:
    """Cuts x rows of booleans as words of 64 rows."""
    cuts, rows = truth.shape
    found = np.zeros((cuts, (rows + 63) // 64), np.uint64)
    for c in range(cuts):
        for r in range(rows):
            if truth[c, r]:
                found[c, r >> 6] |= np.uint64(1) << np.uint64(r & 63)
    return found


@njit(cache=True)
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


@njit(cache=True)
def _lacking(c: int, clauses: Any, some: Any, other: Any) -> float:
    """The share of a clause's facts that a set of rows lacks."""
    facts, starts = clauses[0], clauses[1]
    lacking = 0
    for at in range(starts[c], starts[c + 1]):
        fact = facts[at]
        lacking += not (other if fact & 1 else some)[fact >> 1]
    share: float = lacking / (starts[c + 1] - starts[c])
    return share


@njit(cache=True)
def skipped(queries: Any, clauses: Any, some: Any, other: Any, near: bool) -> float:
    """The weight of the queries for which one clause cannot hold; with `near`, shares of clauses count too."""
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    total = 0.0
    for q in queries:
        most = 0.0
        for at in range(starts[q], starts[q + 1]):
            most = max(most, _lacking(needs[at], clauses, some, other))
            if most == 1.0:
                break
        total += weights[q] * (most if near else np.floor(most))
    return total


@njit(cache=True)
def open_queries(queries: Any, clauses: Any, some: Any, other: Any) -> Any:
    """Those that a set of rows does not skip, but a part of it might: not all clauses surely hold on every part. And
    which cuts they still ask for."""
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


@njit(cache=True)
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
    """Where row c of `bits` is set and where it is not: which cuts are sometimes TRUE there, which sometimes not."""
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


@njit(cache=True, nogil=True)
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
    """The row of `bits`, of those from `first` to `end`, that gains most, or -1; and its gain. Both sides have `least`
    rows, or one of them at most `shared`.

    With eps >= 0 a gain counts for each bit of the split's entropy. With `near` it is also a gain that queries come
    nearer to being skipped: a cut that removes one side of an OR.
    """
    ls, lo, rs, ro = some.copy(), other.copy(), some.copy(), other.copy()
    now = n * skipped(queries, clauses, some, other, near)
    best, most = -1, 1e-6 * n
    for c in range(first, end):
        left = sizes[c]
        right = n - left
        small = min(left, right)
        if n - small < least or (small < least and not 0 < small <= shared):
            continue
        sides(bits, n, c, cuts, asked, ls, lo, rs, ro)
        gain = left * skipped(queries, clauses, ls, lo, near) + right * skipped(queries, clauses, rs, ro, near) - now
        if eps >= 0:
            share = left / n
            gain /= eps - share * np.log2(share) - (1 - share) * np.log2(1 - share)
        if gain > most:
            best, most = c, gain
    return best, most


@njit(cache=True)
def part(bits: Any, n: int, c: int, is_set: bool, kept: Any) -> Any:
    """The columns where row c of `bits` is set (or is not), of the rows `kept`."""
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


@njit(cache=True)
def _joined(blocks: Any, i: int, others: Any, k: int, clauses: Any, most: float) -> float:
    """The weight of the queries that block i and k of the others cannot skip as one; some number above `most` if it
    is above `most`."""
    _, holds, may, _ = blocks
    _, other_holds, other_may, _ = others
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    total = 0.0
    for q in range(len(weights)):
        reads = True
        if not (may[i, q] or other_may[k, q]):
            for at in range(starts[q], starts[q + 1]):
                c = needs[at]
                if not (holds[i, c] or other_holds[k, c]):
                    reads = False
                    break
        if reads:
            total += weights[q]
            if total > most:
                break
    return total


@njit(cache=True)
def _listed(may: Any) -> Any:
    """The queries of each row of `may`, one list after the other, and where each list starts."""
    queries, starts = np.empty(may.sum(), np.int64), np.zeros(len(may) + 1, np.int64)
    n = 0
    for i in range(len(may)):
        for q in range(may.shape[1]):
            if may[i, q]:
                queries[n] = q
                n += 1
        starts[i + 1] = n
    return queries, starts


@njit(cache=True)
def _at_least(blocks: Any, i: int, listed: Any, k: int, clauses: Any, most: float) -> float:
    """What `_joined` is at least, for less: the queries that cannot skip the one or the other."""
    _, _, may, weight = blocks
    queries, starts = listed
    total: float = weight[i]
    for at in range(starts[k], starts[k + 1]):
        if not may[i, queries[at]]:
            total += clauses[4][queries[at]]
            if total > most:
                break
    return total


@njit(cache=True)
def _look(blocks: Any, i: int, clauses: Any) -> None:
    """Find out again which queries block i cannot skip."""
    _, holds, may, weight = blocks
    needs, starts, weights = clauses[2], clauses[3], clauses[4]
    weight[i] = 0.0
    for q in range(len(weights)):
        may[i, q] = True
        for at in range(starts[q], starts[q + 1]):
            if not holds[i, needs[at]]:
                may[i, q] = False
                break
        if may[i, q]:
            weight[i] += weights[q]


@njit(cache=True)
def _lack(rows: float, least: float) -> float:
    return max(0.0, least - rows)


@njit(cache=True)
def _try(i: int, k: int, blocks: Any, bounds: Any, clauses: Any, least: float, limit: float, look: bool) -> float:
    """What joining i and k costs for each row that they then no longer lack, if below `limit`; else `limit`.

    Without `look` it is what the bounds say; what looking finds out goes into them.
    """
    rows, _, _, weight = blocks
    size = rows[i] + rows[k]
    own = rows[i] * weight[i] + rows[k] * weight[k]
    filled = _lack(rows[i], least) + _lack(rows[k], least) - _lack(size, least)
    joined = bounds[i, k]
    if look and size * joined - own < limit * filled:
        joined = max(joined, _joined(blocks, i, blocks, k, clauses, (limit * filled + own) / size))
        bounds[i, k] = bounds[k, i] = joined
    price: float = min(limit, (size * joined - own) / filled)
    return price


@njit(cache=True)
def _partner(i: int, blocks: Any, alive: Any, bounds: Any, clauses: Any, least: float) -> Any:
    """The cheapest partner of block i and its price; the most promising first, so that most need no look."""
    near, bound = -1, np.inf
    for k in range(len(alive)):
        if alive[k] and k != i:
            lower = _try(i, k, blocks, bounds, clauses, least, np.inf, False)
            if lower < bound:
                near, bound = k, lower
    at, price = near, _try(i, near, blocks, bounds, clauses, least, np.inf, True)
    for k in range(len(alive)):
        if alive[k] and k != i and k != near:
            found = _try(i, k, blocks, bounds, clauses, least, price, True)
            if found < price:
                at, price = k, found
    return at, price


@njit(cache=True, nogil=True)
def join(blocks: Any, bounds: Any, clauses: Any, least: float) -> Any:
    """The cheapest join of a block that is too small, again and again until none is: into which each block went.

    `bounds` are blocks x blocks: the weight that two have as one, at least.
    """
    rows, holds, may, weight = blocks
    n = len(rows)
    into = np.arange(n)
    alive, stale = np.ones(n, np.bool_), np.ones(n, np.bool_)
    price, at = np.full(n, np.inf), np.full(n, -1)
    for _ in range(n - 1):
        best = -1
        for i in range(n):
            if alive[i] and rows[i] < least:
                if stale[i]:
                    at[i], price[i] = _partner(i, blocks, alive, bounds, clauses, least)
                    stale[i] = False
                if best < 0 or price[i] < price[best]:
                    best = i
        if best < 0:
            break
        i, j = best, at[best]
        rows[i] += rows[j]
        holds[i] |= holds[j]
        _look(blocks, i, clauses)
        alive[j], into[j], stale[i] = False, i, True
        listed = _listed(may[i : i + 1])
        for k in range(n):
            if alive[k] and k != i:
                lower = max(bounds[i, k], bounds[j, k], weight[i])
                if at[k] == i or at[k] == j:
                    stale[k] = True
                elif rows[k] < least and not stale[k]:
                    lower = max(lower, _at_least(blocks, k, listed, 0, clauses, np.inf) * (1 - 1e-9))  # sums round
                bounds[i, k] = bounds[k, i] = lower
                if rows[k] < least and not stale[k]:
                    found = _try(k, i, blocks, bounds, clauses, least, price[k], True)
                    if found < price[k]:
                        price[k], at[k] = found, i
    for i in range(n):
        while into[into[i]] != into[i]:
            into[i] = into[into[i]]
    return into


@njit(cache=True)
def move(cells: Any, of: Any, blocks: Any, clauses: Any, least: float) -> int:
    """Let single cells go to blocks where they cost less, as long as no block falls below `least`; how many went.

    `of` is the block of each cell; `blocks` are filled in here.
    """
    size, cell_holds, cell_may, cell_weight = cells
    rows, holds, _, weight = blocks
    listed = _listed(cell_may)
    n, m = len(size), len(rows)
    counts, members = np.zeros(holds.shape, np.int32), np.zeros(m, np.int64)
    for i in range(n):
        rows[of[i]] += size[i]
        counts[of[i]] += cell_holds[i]
        members[of[i]] += 1
    for k in range(m):
        holds[k] = counts[k] > 0
        _look(blocks, k, clauses)
    moved = 0
    for i in range(n):
        b = of[i]
        if members[b] < 2 or rows[b] - size[i] < least:
            continue
        before = rows[b] * weight[b]
        holds[b] = counts[b] > cell_holds[i]
        _look(blocks, b, clauses)
        rows[b] -= size[i]
        gain = (before - rows[b] * weight[b]) * (1 - 1e-6)
        to = -1
        for k in range(m):
            own, after = rows[k] * weight[k], rows[k] + size[i]
            if k == b or after * max(weight[k], cell_weight[i]) - own >= gain:
                continue
            limit = (gain + own) / after
            if _at_least(blocks, k, listed, i, clauses, limit) > limit:
                continue
            joined = _joined(blocks, k, cells, i, clauses, limit)
            if after * joined - own < gain:
                to, gain = k, after * joined - own
        if to < 0:
            to = b
        else:
            moved += 1
        counts[b] -= cell_holds[i]
        counts[to] += cell_holds[i]
        members[b] -= 1
        members[to] += 1
        of[i] = to
        rows[to] += size[i]
        holds[to] = counts[to] > 0
        _look(blocks, to, clauses)
    return moved


@njit(cache=True)
def emit(cells: Any, of: Any, blocks: Any, clauses: Any, least: float, tries: int) -> int:
    """New blocks out of what others can spare: cells that cost little together and much where they are.

    `blocks` has room for more than there are: the first free one is the return value's to tell, how many are used.
    """
    size, cell_holds, cell_may, cell_weight = cells
    rows, holds, _, weight = blocks
    listed = _listed(cell_may)
    n = len(size)
    used = 0
    counts, members = np.zeros(holds.shape, np.int32), np.zeros(len(rows), np.int64)
    for i in range(n):
        used = max(used, of[i] + 1)
        rows[of[i]] += size[i]
        counts[of[i]] += cell_holds[i]
        members[of[i]] += 1
    for k in range(used):
        holds[k] = counts[k] > 0
        _look(blocks, k, clauses)
    regret = np.empty(n)
    for i in range(n):
        regret[i] = cell_weight[i] - weight[of[i]]
    taken, spared = np.zeros(n, np.bool_), np.zeros(len(rows))
    own = np.empty(n, np.int64)
    for seed in np.argsort(regret)[:tries]:
        if used == len(rows):
            break
        if members[of[seed]] < 2 or rows[of[seed]] - size[seed] < least:
            continue
        # `used` is the block in the making; donors keep their rows until it is worth it.
        taken[:] = False
        spared[:] = 0.0
        m, worth = 0, 0.0
        rows[used] = 0.0
        holds[used] = False
        weight[used] = 0.0
        best = seed
        while best >= 0:
            rows[used] += size[best]
            holds[used] |= cell_holds[best]
            taken[best] = True
            spared[of[best]] += size[best]
            worth += size[best] * weight[of[best]]
            own[m] = best
            m += 1
            _look(blocks, used, clauses)
            if rows[used] >= least:
                break
            best, price = -1, np.inf
            for x in range(n):
                b = of[x]
                if taken[x] or rows[b] - spared[b] - size[x] < least:
                    continue
                after = rows[used] + size[x]
                base = rows[used] * weight[used] + size[x] * weight[b]
                if (after * max(weight[used], cell_weight[x]) - base) / size[x] >= price:
                    continue
                limit = (price * size[x] + base) / after
                if _at_least(blocks, used, listed, x, clauses, limit) > limit:
                    continue
                joined = _joined(blocks, used, cells, x, clauses, limit)
                found = (after * joined - base) / size[x]
                if found < price:
                    best, price = x, found
        if best < 0 or rows[used] * weight[used] >= worth * (1 - 1e-6):
            continue
        for at in range(m):
            x = own[at]
            b = of[x]
            rows[b] -= size[x]
            members[b] -= 1
            counts[b] -= cell_holds[x]
            counts[used] += cell_holds[x]
            holds[b] = counts[b] > 0
            _look(blocks, b, clauses)
            of[x] = used
        members[used] = m
        used += 1
    return used
