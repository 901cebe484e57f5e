"""Z-order with learned bits: their number per column, and their order (Gao et al., ML for Systems at NeurIPS 2023).

    5 bits of day, 3 of price, by Definition 2         day price day price day price day day
    any order of these bits                            day day price day price day day price

The cost of an order is the number of sample rows that the queries would scan (`scan_cost`). The default search differs
from the paper's, which is `ZOrderLearned(search="bayes")`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import ceil, floor, inf, log2
from random import Random
from time import monotonic
from typing import Any, get_args
from typing import Literal as Choice

import numpy as np

from hedgerow.core.arrays import Ints
from hedgerow.core.errors import LayoutError
from hedgerow.core.layouts.curve import Axis, CurveLayout, Keys, places_of, turned
from hedgerow.core.layouts.curve_kernels import spread
from hedgerow.core.learning.curve_order import (
    KEY_BITS,
    Axes,
    axis_of,
    bits_each,
    check_axes,
    curve_layout,
    filtered_terms,
    named_terms,
)
from hedgerow.core.learning.problem import Problem
from hedgerow.core.predicates.nodes import columns_of
from hedgerow.core.progress import Progress
from hedgerow.learners.curves.hilbert import Hilbert
from hedgerow.learners.curves.range import Range
from hedgerow.learners.curves.scan_cost import MAX_LISTED_VALUES, Zones
from hedgerow.learners.curves.zorder import ZOrder

Search = Choice["order", "bayes"]
Pattern = tuple[int, ...]
BIT_STEPS = (16, 8, 4, 2, 1)  # the numbers of bits that are moved from one term to another in one step, in this order
GREEDY_BITS = 4  # bits that the greedy start adds to a term in one step
FINER_BITS = 4  # bits of a key below the bits that number the blocks, whose order still matters
MAX_RESTARTS, CHANGES = 100, 3  # restarts of the search for an order; random changes of the best order before each
BAYES_STARTS = 5  # random points before the optimiser's suggestions: its own default


@dataclass(frozen=True)
class ZOrderLearned:
    """A learner that searches for the number and the order of the bits that each column contributes to a key.

    `search`: "order" moves bits from column to column, then searches for the order of the bits. The result is a snake,
    and costs no more on the sample than `range`, `zorder` or `hilbert`. "bayes" is the paper's algorithm: it finds the
    numbers of bits of a Z-order by Bayesian optimisation (needs the extra bo). Its cost is the rows scanned by bounds,
    times the columns that the query filters on. `axes`: as for `zorder`; the paper takes the bits of values.

    `iterations`: the maximal number of orders to try. `seconds`: stop after this time; then the same seed may give
    another layout.
    """

    columns: tuple[str, ...] = ()
    search: Search = "order"
    axes: Axes = "ranks"
    iterations: int = 600
    seconds: float | None = None

    def fit(self, problem: Problem) -> CurveLayout:
        self._check()
        terms = named_terms(problem, self.columns) or list(filtered_terms(problem))[:KEY_BITS]
        axes = [axis_of(problem, term, bits_each(problem, 1), self.axes) for term in terms]
        if not axes:
            return curve_layout(problem, (), ())
        as_published = self.search == "bayes"
        curve = "bits" if as_published else "snake"
        widths = [len(columns_of(p)) if as_published else 1 for p in problem.predicates]
        weights = [w * n for w, n in zip(problem.weights, widths, strict=True)]
        zones = Zones.of(problem, weights, listed=0 if as_published else MAX_LISTED_VALUES)
        until = monotonic() + self.seconds if self.seconds else inf
        tried = TriedOrders(problem, axes, zones, curve, self.iterations, until)
        try:
            with suppress(BudgetSpent):
                self._search(tried, Random(problem.seed))
        except KeyboardInterrupt:
            tried.progress.report("interrupted: the result is the best order so far")
        best = curve_layout(problem, *shortened(axes, tried.best), curve)
        if as_published:
            return best
        peers = [learner.fit(problem) for learner in (Range(self.columns), ZOrder(self.columns), Hilbert(self.columns))]
        rows = problem.sample.rows
        return min([best, *peers], key=lambda layout: zones.cost(layout.keys(rows)))

    def _search(self, tried: TriedOrders, random: Random) -> None:
        """Try orders until BudgetSpent is raised, or no order is left."""
        if self.search == "bayes":
            by_bayes(tried, random.getrandbits(32))
            return
        for i in range(len(tried.axes)):
            tried.cost((i,) * KEY_BITS)
            tried.cost(interleaved([KEY_BITS // (i + 1)] * (i + 1)))
        by_bits(tried, greedy_bits(tried), random, self.iterations // 2)
        by_order(tried, random)

    def _check(self) -> None:
        if self.search not in get_args(Search):
            raise LayoutError(f"zorder_learned's search must be {' or '.join(get_args(Search))}, not {self.search!r}")
        check_axes(self.axes)
        if not isinstance(self.iterations, int) or isinstance(self.iterations, bool) or self.iterations < 1:
            raise LayoutError(f"zorder_learned's iterations must be a whole number from 1 on, not {self.iterations!r}")
        if self.seconds is not None and (not isinstance(self.seconds, int | float) or not self.seconds > 0):
            raise LayoutError(f"zorder_learned's seconds must be a number above 0, not {self.seconds!r}")


class BudgetSpent(Exception):
    """Raised when the budget is used up: the search ends with the best order so far."""


@dataclass
class TriedOrders:
    """The orders tried for a problem, with their costs, and the remaining budget."""

    problem: Problem
    axes: Sequence[Axis]
    zones: Zones
    curve: str
    remaining: int
    until: float
    best: Pattern = field(init=False)
    progress: Progress = field(default_factory=lambda: Progress("zorder_learned"))
    costs: dict[Pattern, float] = field(default_factory=dict)
    shares: dict[int, tuple[Ints, Keys]] = field(default_factory=dict)  # by term: its places, and its ranks' key bits

    def __post_init__(self) -> None:
        rows = self.problem.sample.rows
        blocks = len(self.problem.sample) / self.problem.sample_block_rows
        self.deciding_bits = ceil(log2(blocks + 1)) + FINER_BITS
        self.ranks = [axis.ranks(rows).astype(np.intp) for axis in self.axes]
        self.bits = [axis.bits for axis in self.axes]
        n = len(self.axes)
        self.best = without_idle(interleaved([KEY_BITS // n] * n), self.bits)  # replaced by the first order tried

    def cost(self, pattern: Sequence[int]) -> float:
        """Return the cost of an order; raise BudgetSpent if the order is new and the budget is used up."""
        real = without_idle(pattern, self.bits)
        if real not in self.costs:
            if self.costs and (self.remaining <= 0 or monotonic() > self.until):
                raise BudgetSpent
            self.remaining -= 1
            cost = self.zones.cost(self._keys(real))
            if cost < self.costs.get(self.best, inf):
                self.best = real
            self.costs[real] = cost
            self.progress.report_sometimes(self._message)
        return self.costs[real]

    def _message(self) -> str:
        n = len(self.costs)
        least = self.costs[self.best] / max(1e-9, self.zones.weights.sum() * len(self.problem.sample))
        return f"{n:,} orders, {n / self.progress.seconds:.0f} a second; the best reads {100 * least:.2f} %"

    def _keys(self, pattern: Pattern) -> Keys:
        """Return the keys of the rows; a term's key bits are reused as long as its bits keep their places."""
        keys: Keys = np.zeros(len(self.problem.sample), np.uint64)
        for i, to in enumerate(places_of(self.bits, pattern)):
            if (to < 0).all():
                continue
            if i not in self.shares or not np.array_equal(self.shares[i][0], to):
                self.shares[i] = to, np.zeros(len(self.axes[i].edges) + 1, np.uint64)
                spread(np.arange(len(self.shares[i][1]), dtype=np.uint64), *self.shares[i])
            keys |= self.shares[i][1][self.ranks[i]]
        return turned(keys, pattern) if self.curve == "snake" else keys


def without_idle(pattern: Sequence[int], bits: Sequence[int]) -> Pattern:
    """Return the pattern without the bits that a term does not have, which would be 0 in every key."""
    remaining = list(bits)
    used = []
    for term in pattern:
        remaining[term] -= 1
        if remaining[term] >= 0:
            used.append(term)
    return tuple(used)


def interleaved(allocation: Sequence[int]) -> tuple[int, ...]:
    """Return the pattern of Gao et al., Definition 2, for these numbers of bits.

    In each round a term contributes its bits divided by the fewest bits of any term, rounded down; at most its
    remaining bits.

    >>> interleaved([2, 5, 0])
    (0, 1, 1, 0, 1, 1, 1)
    """
    least = min((bits for bits in allocation if bits), default=1)
    remaining = list(allocation)
    pattern: list[int] = []
    while any(remaining):
        for i, bits in enumerate(allocation):
            count = min(bits // least, remaining[i])
            pattern += [i] * count
            remaining[i] -= count
    return tuple(pattern)


def shortened(axes: Sequence[Axis], pattern: Sequence[int]) -> tuple[list[Axis], list[int]]:
    """Drop axes that are not in the pattern, and edges that its bits cannot distinguish; the keys stay the same."""
    used = sorted(set(pattern))
    short_axes = []
    for i in used:
        axis = axes[i]
        step = 1 << max(0, axis.bits - list(pattern).count(i))  # the number of ranks with the same key
        short_axes.append(replace(axis, edges=axis.edges[step - 1 :: step]))
    return short_axes, [used.index(i) for i in pattern]


# --- the number of bits per column -----------------------------------------------------------------


def by_bits(tried: TriedOrders, start: list[int], random: Random, spare: int) -> None:
    """Move bits from term to term as long as the cost falls; stop when only `spare` tries remain."""
    best, least = start, tried.cost(interleaved(start))
    for step in BIT_STEPS:
        better = True
        while better:
            better = False
            for to, source in shuffled(permutations(range(len(best)), 2), random):
                if tried.remaining <= spare:
                    return
                if best[source] < step:
                    continue
                candidate = list(best)
                candidate[to] += step
                candidate[source] -= step
                cost = tried.cost(interleaved(candidate))
                if cost < least:
                    best, least, better = candidate, cost, True


def greedy_bits(tried: TriedOrders) -> list[int]:
    """Find numbers of bits greedily: repeatedly add a few bits to the term where that costs least."""
    allocation = [0] * len(tried.axes)
    for _ in range(KEY_BITS // GREEDY_BITS):
        terms = range(len(allocation))
        candidates = [[bits + GREEDY_BITS * (i == k) for i, bits in enumerate(allocation)] for k in terms]
        allocation = min(candidates, key=lambda bits: tried.cost(interleaved(bits)))
    return allocation


def by_bayes(tried: TriedOrders, seed: int) -> None:
    """Search like the paper: try points of the unit cube, rounded to numbers of bits."""
    try:
        from bayes_opt import BayesianOptimization
    except ImportError as error:
        raise LayoutError(
            "Bayesian optimisation needs a package that is not installed: pip install 'hedgerow[bo]'"
        ) from error
    names = [f"p{i}" for i in range(len(tried.axes))]
    bounds = {name: (0.0, 1.0) for name in names}
    optimiser = BayesianOptimization(None, bounds, random_state=seed, verbose=0, allow_duplicate_points=True)
    first = optimiser.random_sample(BAYES_STARTS)
    for _ in range(tried.remaining):
        point: dict[str, Any] = first.pop() if first else optimiser.suggest()
        optimiser.register(point, -tried.cost(interleaved(rounded([point[name] for name in names], KEY_BITS))))


def rounded(shares: Sequence[float], total: int) -> list[int]:
    """Round shares of a total down to whole numbers, and add 1 to the largest remainders to keep the sum.

    >>> rounded([0.5, 0.5, 0.2], 64)
    [27, 27, 10]
    """
    if not sum(shares):
        shares = [1.0] * len(shares)
    exact = [total * share / sum(shares) for share in shares]
    integers = [floor(x) for x in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (integers[i] - exact[i], i))
    for i in by_remainder[: total - sum(integers)]:
        integers[i] += 1
    return integers


# --- the order of the bits -------------------------------------------------------------------------


def by_order(tried: TriedOrders, random: Random) -> None:
    """Change single bits of the best order as long as the cost falls; then change some at random and begin again."""
    order = tried.best
    for _ in range(MAX_RESTARTS):
        least = tried.cost(order)
        better = True
        while better:
            better = False
            for candidate in shuffled(neighbours(order, tried), random):
                cost = tried.cost(candidate)
                if cost < least:
                    order, least, better = candidate, cost, True
                    break
        order = tried.best
        for _ in range(CHANGES):
            order = random.choice([*neighbours(order, tried), order])


def neighbours(pattern: Pattern, tried: TriedOrders) -> Iterator[Pattern]:
    """Yield the patterns with one bit of another term, or one bit moved; low bits that hardly matter stay unchanged."""
    deciding = min(len(pattern), tried.deciding_bits)
    for at in range(deciding):
        for term in range(len(tried.axes)):
            if term != pattern[at]:
                yield without_idle((*pattern[:at], term, *pattern[at + 1 :]), tried.bits)
        for to in range(deciding):
            if pattern[to] != pattern[at]:
                yield moved(pattern, at, to)


def moved(pattern: Pattern, at: int, to: int) -> Pattern:
    """Return the pattern with the bit at `at` moved to `to`."""
    remaining = [*pattern[:at], *pattern[at + 1 :]]
    remaining.insert(to, pattern[at])
    return tuple(remaining)


def shuffled(items: Any, random: Random) -> list[Any]:
    shuffled_items = list(items)
    random.shuffle(shuffled_items)
    return shuffled_items
