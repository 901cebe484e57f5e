"""Compiled loops of joining small cells into blocks.

`clauses` is what `Clauses.lists` returns: facts, fact_starts, needs, need_starts, weights.
`blocks` is four arrays, one entry a block: its rows; which clauses hold; which queries cannot skip it; their weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
