"""Compiled loops that join small cells into blocks.

`clauses` are `ClauseArrays`: facts, fact_starts, needs, need_starts, weights.
`blocks` are four arrays with an entry for each block: rows; clauses that may hold; queries that read it; their weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hedgerow.core.compiled_loop import compiled_loop

LEAST_GAIN = 1e-6  # relative: a smaller gain may be rounding, and would repeat forever
SUM_ROUNDING = 1e-9  # relative: at least the error of a float64 sum, so that a bound stays a bound
NEAREST = 256  # the candidates, or slightly more, that may follow the first cell into a new block


class JoinRule(NamedTuple):
    """The least rows of a block, and whether the extra rows of a join are divided by the shortfall that it removes."""

    least: float
    by_shortfall: bool


@compiled_loop()
def _joined(blocks: Any, i: int, others: Any, k: int, clauses: Any, most: float) -> float:
    """Return the weight of the queries that read block i and block k of `others` as one.

    If it is above `most`, the result is some number above `most`.
    """
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


@compiled_loop()
def _listed(may: Any) -> Any:
    """Return the queries of each row of `may`, as one array with all lists, and the start of each list."""
    queries, starts = np.empty(may.sum(), np.int64), np.zeros(len(may) + 1, np.int64)
    n = 0
    for i in range(len(may)):
        for q in range(may.shape[1]):
            if may[i, q]:
                queries[n] = q
                n += 1
        starts[i + 1] = n
    return queries, starts


@compiled_loop()
def _at_least(blocks: Any, i: int, listed: Any, k: int, clauses: Any, most: float) -> float:
    """Return a cheap lower bound for `_joined`: the weight of the queries that read at least one of the two."""
    _, _, may, weight = blocks
    queries, starts = listed
    total: float = weight[i]
    for at in range(starts[k], starts[k + 1]):
        if not may[i, queries[at]]:
            total += clauses[4][queries[at]]
            if total > most:
                break
    return total


@compiled_loop()
def _look(blocks: Any, i: int, clauses: Any) -> None:
    """Recompute the queries that read block i, and their weight."""
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


@compiled_loop()
def _lack(rows: float, least: float) -> float:
    return max(0.0, least - rows)


@compiled_loop()
def _price(i: int, k: int, blocks: Any, bounds: Any, clauses: Any, rule: Any, limit: float, exact: bool) -> float:
    """Return the price of joining i and k: extra rows read, divided as `JoinRule` says.

    It is at most `limit`. Without `exact` it is a lower bound, computed from `bounds`; with `exact`, `bounds` become
    narrower.
    """
    rows, _, _, weight = blocks
    size = rows[i] + rows[k]
    apart = rows[i] * weight[i] + rows[k] * weight[k]
    least, by_shortfall = rule
    filled = _lack(rows[i], least) + _lack(rows[k], least) - _lack(size, least) if by_shortfall else 1.0
    joined = bounds[i, k]
    if exact and size * joined - apart < limit * filled:
        joined = max(joined, _joined(blocks, i, blocks, k, clauses, (limit * filled + apart) / size))
        bounds[i, k] = bounds[k, i] = joined
    price: float = min(limit, (size * joined - apart) / filled)
    return price


@compiled_loop()
def _partner(i: int, blocks: Any, alive: Any, bounds: Any, clauses: Any, rule: Any) -> Any:
    """Return the cheapest partner of block i, and its price.

    The block with the least lower bound comes first, because its price rules out most others.
    """
    near, bound = -1, np.inf
    for k in range(len(alive)):
        if alive[k] and k != i:
            lower = _price(i, k, blocks, bounds, clauses, rule, np.inf, False)
            if lower < bound:
                near, bound = k, lower
    at, price = near, _price(i, near, blocks, bounds, clauses, rule, np.inf, True)
    for k in range(len(alive)):
        if alive[k] and k != i and k != near:
            new_price = _price(i, k, blocks, bounds, clauses, rule, price, True)
            if new_price < price:
                at, price = k, new_price
    return at, price


@compiled_loop(nogil=True)
def join(blocks: Any, bounds: Any, clauses: Any, rule: Any) -> Any:
    """Repeat the cheapest join of a block that is too small, until none is left; return the new block of each.

    `rule` is a `JoinRule`. `bounds` are blocks x blocks: lower bounds for the weight of the queries that read the two
    as one.
    """
    rows, holds, may, weight = blocks
    least = rule.least
    n = len(rows)
    into = np.arange(n)
    alive, stale = np.ones(n, np.bool_), np.ones(n, np.bool_)
    price, at = np.full(n, np.inf), np.full(n, -1)
    for _ in range(n - 1):
        best = -1
        for i in range(n):
            if alive[i] and rows[i] < least:
                if stale[i]:
                    at[i], price[i] = _partner(i, blocks, alive, bounds, clauses, rule)
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
                    lower = max(lower, _at_least(blocks, k, listed, 0, clauses, np.inf) * (1 - SUM_ROUNDING))
                bounds[i, k] = bounds[k, i] = lower
                if rows[k] < least and not stale[k]:
                    new_price = _price(k, i, blocks, bounds, clauses, rule, price[k], True)
                    if new_price < price[k]:
                        price[k], at[k] = new_price, i
    for i in range(n):
        while into[into[i]] != into[i]:
            into[i] = into[into[i]]
    return into


@compiled_loop()
def _fill(cells: Any, of: Any, blocks: Any, clauses: Any) -> Any:
    """Fill in empty blocks: cell i is in block `of[i]`. Return for each block its cells by clause, and their number."""
    size, cell_holds, _, _ = cells
    rows, holds, _, _ = blocks
    counts, members = np.zeros(holds.shape, np.int32), np.zeros(len(rows), np.int64)
    for i in range(len(size)):
        rows[of[i]] += size[i]
        counts[of[i]] += cell_holds[i]
        members[of[i]] += 1
    for k in range(len(rows)):
        holds[k] = counts[k] > 0
        _look(blocks, k, clauses)
    return counts, members


@compiled_loop()
def move(cells: Any, of: Any, blocks: Any, clauses: Any, least: float) -> int:
    """Move single cells to blocks where they cost less, unless a block would fall below `least`; return their number.

    `of` is the block of each cell and is updated; `blocks` are empty at first and are filled in.
    """
    size, cell_holds, cell_may, cell_weight = cells
    rows, holds, _, weight = blocks
    listed = _listed(cell_may)
    n, m = len(size), len(rows)
    counts, members = _fill(cells, of, blocks, clauses)
    moved = 0
    for i in range(n):
        b = of[i]
        if members[b] < 2 or rows[b] - size[i] < least:
            continue
        before = rows[b] * weight[b]
        holds[b] = counts[b] > cell_holds[i]
        _look(blocks, b, clauses)
        rows[b] -= size[i]
        gain = (before - rows[b] * weight[b]) * (1 - LEAST_GAIN)
        to = -1
        for k in range(m):
            without, after = rows[k] * weight[k], rows[k] + size[i]
            if k == b or after * max(weight[k], cell_weight[i]) - without >= gain:
                continue
            limit = (gain + without) / after
            if _at_least(blocks, k, listed, i, clauses, limit) > limit:
                continue
            joined = _joined(blocks, k, cells, i, clauses, limit)
            if after * joined - without < gain:
                to, gain = k, after * joined - without
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


@compiled_loop()
def _nearest(blocks: Any, k: int, size: Any, of: Any, listed: Any, clauses: Any) -> Any:
    """Return the cells that may be cheap to add to block k: the first NEAREST by lower bounds of the price per row."""
    rows, _, _, weight = blocks
    n = len(size)
    prices = np.empty(n)
    for x in range(n):
        joined = _at_least(blocks, k, listed, x, clauses, np.inf)
        apart = rows[k] * weight[k] + size[x] * weight[of[x]]
        prices[x] = ((rows[k] + size[x]) * joined - apart) / size[x]
    if n <= NEAREST:
        return np.arange(n)
    return np.flatnonzero(prices <= np.partition(prices, NEAREST)[NEAREST])


@compiled_loop()
def _cheapest(cells: Any, giving: Any, near: Any, blocks: Any, new: int, listed: Any, clauses: Any) -> int:
    """Return the cell of `near` that is cheapest to add to the block `new`, per row; -1 if no block can spare one.

    `giving`: the block of each cell, the cells already in the new block, the rows that each block gave, and the rows
    that it has to keep."""
    size, _, _, cell_weight = cells
    of, in_new, gave, least = giving
    rows, _, _, weight = blocks
    best, price = -1, np.inf
    for x in near:
        b = of[x]
        if in_new[x] or rows[b] - gave[b] - size[x] < least:
            continue
        after = rows[new] + size[x]
        base = rows[new] * weight[new] + size[x] * weight[b]
        if (after * max(weight[new], cell_weight[x]) - base) / size[x] >= price:
            continue
        limit = (price * size[x] + base) / after
        if _at_least(blocks, new, listed, x, clauses, limit) > limit:
            continue
        joined = _joined(blocks, new, cells, x, clauses, limit)
        new_price = (after * joined - base) / size[x]
        if new_price < price:
            best, price = x, new_price
    return best


@compiled_loop()
def _grown(seed: int, cells: Any, of: Any, blocks: Any, new: int, listed: Any, clauses: Any, least: float) -> Any:
    """Fill the block `new` with `seed` and the cheapest cells of other blocks, which keep their rows for now.

    Return its cells; none if there are too few, or if they do not cost less than where they are."""
    size, cell_holds, _, _ = cells
    rows, holds, _, weight = blocks
    in_new, gave = np.zeros(len(size), np.bool_), np.zeros(len(rows))
    added = np.empty(len(size), np.int64)
    near: Any = added[:0]
    n, worth = 0, 0.0
    rows[new] = 0.0
    holds[new] = False
    weight[new] = 0.0
    best = seed
    while best >= 0:
        rows[new] += size[best]
        holds[new] |= cell_holds[best]
        in_new[best] = True
        gave[of[best]] += size[best]
        worth += size[best] * weight[of[best]]
        added[n] = best
        n += 1
        _look(blocks, new, clauses)
        if rows[new] >= least:
            break
        if n == 1:
            near = _nearest(blocks, new, size, of, listed, clauses)
        best = _cheapest(cells, (of, in_new, gave, least), near, blocks, new, listed, clauses)
    pays = best >= 0 and rows[new] * weight[new] < worth * (1 - LEAST_GAIN)
    return added[:n] if pays else added[:0]


@compiled_loop()
def emit(cells: Any, of: Any, blocks: Any, clauses: Any, least: float, tries: int) -> int:
    """Move cells from existing blocks into new blocks, where that makes queries read fewer rows.

    A new block begins with one cell: `tries` cells are tried, those with the most unnecessary reads in their blocks
    first. The cheapest cells are added until it has `least` rows, but no block that gives cells may fall below `least`
    rows. The new block is kept only if its cells then cost less than before.

    `of` is the block of each cell, and is updated. `blocks` begins as zeros, with spare entries for new blocks; return
    the number of entries in use.
    """
    size, cell_holds, cell_may, cell_weight = cells
    rows, holds, _, weight = blocks
    listed = _listed(cell_may)
    n = len(size)
    used: int = of.max() + 1
    counts, members = _fill(cells, of, blocks, clauses)
    regret = np.empty(n)
    for i in range(n):
        regret[i] = cell_weight[i] - weight[of[i]]
    for seed in np.argsort(regret)[:tries]:
        if used == len(rows):
            break
        if members[of[seed]] < 2 or rows[of[seed]] - size[seed] < least:
            continue
        added = _grown(seed, cells, of, blocks, used, listed, clauses, least)
        if not len(added):
            continue
        for x in added:
            b = of[x]
            rows[b] -= size[x]
            members[b] -= 1
            counts[b] -= cell_holds[x]
            counts[used] += cell_holds[x]
            holds[b] = counts[b] > 0
            _look(blocks, b, clauses)
            of[x] = used
        members[used] = len(added)
        used += 1
    return used
