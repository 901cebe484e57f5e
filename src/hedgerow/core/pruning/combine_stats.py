"""Statistics made from others: of all entries of several parts, of entries that are merged or repeated, or compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.on_use import OnUse
from hedgerow.core.pruning.block_stats import (
    ANY,
    MAX_DISTINCT,
    MAX_WORDS,
    UNKNOWN_NULLS,
    NotedCondition,
    Stats,
    TermStats,
    drop_unused_values,
    reduce_runs,
)
from hedgerow.core.pruning.distinct_sets import UNKNOWN_SET, DistinctSets
from hedgerow.core.pruning.value_codes import merge_values, recode_tables


def concat(parts: Sequence[Stats]) -> Stats:
    """Return the entries of all parts, part after part; terms and conditions that a part lacks become unknown."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for s in parts for name in s.terms)
    terms = OnUse({name: partial(_concat_terms, parts, name) for name in names})
    conditions = {}
    for name, condition in ((n, f) for s in parts for n, f in s.conditions.items()):
        bits = [s.conditions[name].bits if name in s.conditions else np.full(len(s), ANY, np.uint8) for s in parts]
        conditions[name] = NotedCondition(condition.predicate, np.concatenate(bits))
    return Stats(np.concatenate([s.rows for s in parts]), terms, conditions)


def _concat_terms(parts: Sequence[Stats], name: str) -> TermStats:
    """Return a term of all parts; all is unknown if the parts have values of different kinds."""
    types = [s.terms[name].type for s in parts if name in s.terms]
    if len({type_.kind for type_ in types}) > 1:
        return TermStats.unknown(types[0], sum(map(len, parts)))
    return _concat_term([s.terms.get(name) or TermStats.unknown(types[0], len(s)) for s in parts])


def _concat_term(parts: Sequence[TermStats]) -> TermStats:
    values, places = merge_values([t.values for t in parts])
    lows, highs = [], []
    sets: list[tuple[DistinctSets | None, int]] = []
    for t, places_of_part in zip(parts, places, strict=True):
        low, high = recode_tables(places_of_part, len(values))
        lows.append(np.where(t.has_value, low[np.minimum(t.low, len(low) - 1)], 1))
        highs.append(np.where(t.has_value, high[np.minimum(t.high, len(high) - 1)], 0))
        sets.append((t.sets.recoded(low) if t.sets else None, len(t.low)))
    return TermStats(
        parts[0].type,
        values,
        np.concatenate(lows).astype(np.int32),
        np.concatenate(highs).astype(np.int32),
        np.concatenate([t.nulls for t in parts]),
        np.concatenate([t.nan for t in parts]),
        DistinctSets.concat(sets),
        _concat_words(parts),
    )


def _concat_words(parts: Sequence[TermStats]) -> TermStats | None:
    if not any(t.words for t in parts):
        return None
    return _concat_term([t.words or TermStats.unknown(t.type, len(t.low)) for t in parts])


def agree(stored: Stats, fresh: Stats) -> Bools:
    """Return for each entry whether its stored statistics equal the fresh ones, or are unknown.

    Rows may have been appended while the index came to describe more terms: then the stored statistics lack some.
    """
    n, both = len(stored), concat([stored, fresh])
    same: Bools = both.rows[:n] == both.rows[n:]
    for t in both.terms.values():
        equal: Bools = np.ones(n, bool)
        for values in (t.low, t.high, t.nulls, t.nan):
            equal = equal & (values[:n] == values[n:])
        if t.sets:
            stored_set, fresh_set = t.sets.set_of[:n], t.sets.set_of[n:]
            equal = equal & ((stored_set == UNKNOWN_SET) | (stored_set == fresh_set))
        if t.words and t.words.sets:  # words come only from footers, so the fresh statistics may lack them
            stored_set, fresh_set = t.words.sets.set_of[:n], t.words.sets.set_of[n:]
            equal = equal & ((stored_set == fresh_set) | (stored_set == UNKNOWN_SET) | (fresh_set == UNKNOWN_SET))
        same = same & (equal | t.is_unknown[:n])
    for condition in both.conditions.values():
        bits = condition.bits
        same = same & ((bits[:n] == bits[n:]) | (bits[:n] == ANY))
    return same


def repeat(stats: Stats, owner: Ints) -> Stats:
    """Return statistics whose entry i equals entry `owner[i]` of the given ones."""
    terms = {name: _repeat_term(t, owner) for name, t in stats.terms.items()}
    conditions = {name: replace(f, bits=f.bits[owner]) for name, f in stats.conditions.items()}
    return Stats(stats.rows[owner], terms, conditions)


def _repeat_term(t: TermStats, owner: Ints) -> TermStats:
    return replace(
        t,
        low=t.low[owner],
        high=t.high[owner],
        nulls=t.nulls[owner],
        nan=t.nan[owner],
        sets=t.sets and replace(t.sets, set_of=t.sets.set_of[owner]),
        words=t.words and _repeat_term(t.words, owner),
    )


def regroup(stats: Stats, to: npt.ArrayLike, n: int, max_distinct: int = MAX_DISTINCT) -> Stats:
    """Merge entries into n larger ones (cells into blocks, files into tables): entry i goes into entry `to[i]`."""
    target = np.asarray(to, np.int64)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=n)
    terms = {name: _regroup_term(t, target, order, n, max_distinct) for name, t in stats.terms.items()}
    conditions = {
        name: NotedCondition(f.predicate, reduce_runs(np.bitwise_or, f.bits[order], counts, 0))
        for name, f in stats.conditions.items()
    }
    return Stats(np.bincount(target, weights=stats.rows, minlength=n).astype(np.int64), terms, conditions)


def _regroup_term(t: TermStats, target: Ints, order: Ints, n: int, max_distinct: int) -> TermStats:
    counts = np.bincount(target, minlength=n)
    with_value = order[t.has_value[order]]
    counts_with_value = np.bincount(target[with_value], minlength=n)
    low = reduce_runs(np.minimum, t.low[with_value], counts_with_value, 1)
    high = reduce_runs(np.maximum, t.high[with_value], counts_with_value, 0)
    nulls = reduce_runs(np.add, t.nulls[order], counts, 0)
    nulls_unknown = reduce_runs(np.logical_or, (t.nulls == UNKNOWN_NULLS)[order], counts, 0)
    return drop_unused_values(
        TermStats(
            t.type,
            t.values,
            low,
            high,
            np.where(nulls_unknown, UNKNOWN_NULLS, nulls),
            reduce_runs(np.logical_or, t.nan[order], counts, 0).astype(bool),
            t.sets and t.sets.united(target, n, max_distinct),
            t.words and _regroup_term(t.words, target, order, n, MAX_WORDS),
        )
    )
