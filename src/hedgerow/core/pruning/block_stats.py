"""What is known of n entries (blocks, cells, tree leaves, or single rows): column by column, as numpy arrays.

Per term: minimum, maximum, NULLs, NaN and, where they are few, the distinct values. Per feature: which of TRUE,
FALSE and NULL its rows may have. Everything unknown is written as the widest answer, so nobody can forget to ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.predicates.nodes import Predicate, Term
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value, comparable
from hedgerow.core.pruning.value_codes import (
    NAN_CODE,
    NULL_CODE,
    Codes,
    Ranked,
    code_of,
    moved,
    rank_rows,
    supported,
    united,
    whole,
)

# The three outcomes as bits; a set of outcomes is their sum.
F_BIT, T_BIT, N_BIT, ANY = 1, 2, 4, 7
BIT = {False: F_BIT, True: T_BIT, None: N_BIT}
# What NOT makes of each set: TRUE and FALSE change places.
NOT_BITS = np.array([(b & N_BIT) | (b & F_BIT) << 1 | (b & T_BIT) >> 1 for b in range(8)], np.uint8)
Bits = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

MAX_DISTINCT = 64
UNKNOWN_NULLS = -1


@dataclass(frozen=True)
class DistinctSets:
    """Small value sets, each kept once: entry i has the values `codes[offsets[k]:offsets[k + 1]]`, k = `set_of[i]`
    (k = -1: not known). Codes are odd ranks, see `core/ranks`."""

    set_of: Codes
    offsets: Ints
    codes: Codes

    def of(self, entry: int) -> Codes | None:
        k = self.set_of[entry]
        return None if k < 0 else self.codes[self.offsets[k] : self.offsets[k + 1]]

    @staticmethod
    def build(sets: Sequence[tuple[int, ...] | None]) -> DistinctSets:
        numbers: dict[tuple[int, ...], int] = {}
        set_of = [-1 if s is None else numbers.setdefault(s, len(numbers)) for s in sets]
        offsets = np.cumsum([0, *map(len, numbers)], dtype=np.int64)
        codes = np.fromiter((c for s in numbers for c in s), np.int32, int(offsets[-1]))
        return DistinctSets(np.array(set_of, np.int32).reshape(-1), offsets, codes)

    def recoded(self, table: Codes) -> DistinctSets:
        return replace(self, codes=table[self.codes])


@dataclass(frozen=True)
class TermStats:
    """One term over all entries. `low > high` says: no value at all (only NULL, NaN or no rows)."""

    type: Type
    values: list[Value]
    low: Codes
    high: Codes
    nulls: Ints
    nan: Bools
    sets: DistinctSets | None = None

    @cached_property
    def may_null(self) -> Bools:
        return np.not_equal(self.nulls, 0)

    @cached_property
    def has_value(self) -> Bools:
        return np.less_equal(self.low, self.high)

    @staticmethod
    def unknown(type_: Type, n: int) -> TermStats:
        zero = np.zeros(n, np.int32)
        return TermStats(type_, [], zero, zero, np.full(n, UNKNOWN_NULLS), np.ones(n, bool))

    @staticmethod
    def build(
        type_: Type,
        bounds: Sequence[tuple[Bound, Bound] | None],
        nulls: Sequence[int],
        nan: Sequence[bool] | None = None,
        sets: Sequence[Sequence[Value] | None] | None = None,
    ) -> TermStats:
        """From Python values, entry by entry; bounds None: the entry holds no value."""
        mentioned = {b.value for pair in bounds if pair for b in pair if b.known}
        for s in sets or ():
            mentioned.update(s or ())
        values = sorted(mentioned)
        low = [1 if p is None else _code(values, p[0], 0) for p in bounds]
        high = [0 if p is None else _code(values, p[1], 2 * len(values)) for p in bounds]
        coded = None
        if sets is not None:
            coded = DistinctSets.build(
                [None if s is None else tuple(code_of(values, v) for v in sorted(s)) for s in sets]
            )
        no_nan = np.full(len(bounds), type_.kind == "float") if nan is None else np.array(nan, bool)
        return TermStats(
            type_,
            values,
            np.array(low, np.int32).reshape(-1),
            np.array(high, np.int32).reshape(-1),
            np.array(nulls, np.int64).reshape(-1),
            no_nan.reshape(-1),
            coded,
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an entry's values: at `value`, just below it (gap -1) or just above (gap 1), or not known."""

    value: Value = None
    gap: int = 0
    known: bool = True


UNBOUNDED = Bound(known=False)


def _code(values: Sequence[Value], bound: Bound, unknown: int) -> int:
    return code_of(values, bound.value, bound.gap) if bound.known else unknown


@dataclass(frozen=True)
class Feature:
    """A predicate whose outcomes were noted while rows were written: bits per entry."""

    predicate: Predicate
    bits: Bits


@dataclass(frozen=True)
class Stats:
    """The statistics of n entries; terms and features are found by their canonical text."""

    rows: Ints
    terms: Mapping[str, TermStats]
    features: Mapping[str, Feature]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Answers worth keeping as long as the statistics live (joint ranks, features by term)."""
        return {}


def collect(
    columns: Mapping[Term, pa.Array | pa.ChunkedArray | Ranked],
    outcomes: Mapping[Predicate, Bits] | None = None,
    entry: npt.ArrayLike | None = None,
    entries: int = 1,
    max_distinct: int = MAX_DISTINCT,
) -> Stats:
    """Statistics from rows: `entry[i]` is the entry of row i (all in entry 0 by default).

    `outcomes` holds, for each feature, the outcome bits of each row. Columns of types we do not know are left out.

    >>> from hedgerow.core.predicates.nodes import col
    >>> stats = collect({col("x"): pa.array([3, None, 5])})
    >>> t = stats.terms["x"]
    >>> [t.values[c // 2] for c in (t.low[0], t.high[0])], int(t.nulls[0])
    ([3, 5], 1)
    """
    if entry is None and not any(isinstance(c, Ranked) for c in columns.values()):
        return _collect_whole(columns, outcomes or {}, max_distinct)
    ranked = {term: c if isinstance(c, Ranked) else rank_rows(c) for term, c in columns.items() if usable(c)}
    sizes = [len(c) for c in columns.values() if not isinstance(c, Ranked)]
    sizes += [len(c.places) for c in ranked.values()] + [len(b) for b in (outcomes or {}).values()]
    of = np.zeros(sizes[0], np.int64) if entry is None else np.asarray(entry, np.int64)
    order = np.argsort(of, kind="stable")
    rows = np.bincount(of, minlength=entries)
    terms = {term_text(term): _collect_term(c, of, order, rows, max_distinct) for term, c in ranked.items()}
    features = {text(p): Feature(p, _reduce(np.bitwise_or, b[order], rows, 0)) for p, b in (outcomes or {}).items()}
    return Stats(rows, terms, features)


def _collect_whole(
    columns: Mapping[Term, pa.Array | pa.ChunkedArray], outcomes: Mapping[Predicate, Bits], max_distinct: int
) -> Stats:
    """All rows in one entry: no ranks are needed, and Arrow finds minimum and maximum by itself."""
    sizes = [len(c) for c in (*columns.values(), *outcomes.values())]
    terms = {term_text(t): _whole_term(whole(c), max_distinct) for t, c in columns.items() if usable(c)}
    features = {text(p): Feature(p, np.bitwise_or.reduce(b, keepdims=True)) for p, b in outcomes.items()}
    return Stats(np.array(sizes[:1] or [0], np.int64), terms, features)


def _whole_term(array: pa.Array, max_distinct: int) -> TermStats:
    found = comparable(pc.dictionary_decode(array) if pa.types.is_dictionary(array.type) else array)
    has_nan = False
    if pa.types.is_floating(found.type):
        is_nan = pc.is_nan(found)
        has_nan = pc.any(is_nan).as_py() or False
        found = pc.if_else(is_nan, None, found) if has_nan else found
    ends = pc.min_max(found).as_py()
    distinct = None
    few = max_distinct and len(pc.unique(found[: 4 * max_distinct])) <= max_distinct + 1
    if few:
        values = pc.unique(found).drop_null()
        distinct = values.to_pylist() if len(values) <= max_distinct else None
    bounds = None if ends["min"] is None else (Bound(ends["min"]), Bound(ends["max"]))
    return TermStats.build(
        Type.of_arrow(array.type), [bounds], [array.null_count], [has_nan], [distinct] if max_distinct else None
    )


def usable(column: pa.Array | pa.ChunkedArray | Ranked) -> bool:
    """Whether we know how values of the column's type compare."""
    return isinstance(column, Ranked) or supported(column.type)


def _collect_term(column: Ranked, entry: Ints, order: Ints, rows: Ints, max_distinct: int) -> TermStats:
    values, places = column.values, column.places
    n = len(rows)
    plain = places >= 0
    here = order[plain[order]]
    counts = np.bincount(entry[plain], minlength=n)
    low = _reduce(np.minimum, places[here], counts, 0) * 2 + 1
    high = _reduce(np.maximum, places[here], counts, -1) * 2 + 1
    high[counts == 0] = 0
    sets = None
    if max_distinct:
        pairs = np.unique(entry[plain] * max(len(values), 1) + places[plain])
        owner, value = np.divmod(pairs, max(len(values), 1))
        sizes = np.bincount(owner, minlength=n)
        ends = np.cumsum(sizes)
        sets = DistinctSets.build(
            [
                tuple((value[end - size : end] * 2 + 1).tolist()) if size <= max_distinct else None
                for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)
            ]
        )
    return compact(
        TermStats(
            column.type,
            values,
            low.astype(np.int32),
            high.astype(np.int32),
            np.bincount(entry[places == NULL_CODE], minlength=n),
            np.bincount(entry[places == NAN_CODE], minlength=n) > 0,
            sets,
        )
    )


def _reduce(f: np.ufunc, rows: npt.NDArray[Any], counts: Ints, empty: int) -> npt.NDArray[Any]:
    """Reduce consecutive runs of `counts` rows; runs of none give `empty`."""
    out = np.full(len(counts), empty, rows.dtype)
    filled = counts > 0
    if filled.any():
        starts = (np.cumsum(counts) - counts)[filled]
        out[filled] = f.reduceat(rows, starts)
    return out


def compact(term: TermStats) -> TermStats:
    """Forget values that no bound and no set mentions."""
    used = np.zeros(len(term.values), bool)
    for codes in (term.low, term.high, term.sets.codes if term.sets else term.low):
        # a gap is described by its neighbours, so both stay
        for c in (codes, codes[codes % 2 == 0] - 1, codes[codes % 2 == 0] + 1):
            inside = c[(c % 2 == 1) & (c > 0) & (c < 2 * len(term.values))]
            used[inside // 2] = True
    if used.all():
        return term
    kept = np.flatnonzero(used)
    odd = np.full(2 * len(term.values) + 2, -1, np.int32)
    odd[kept * 2 + 1] = np.arange(len(kept), dtype=np.int32) * 2 + 1
    even = np.cumsum(np.concatenate([[0], used])).astype(np.int32) * 2  # values kept below each gap
    odd[0::2] = even
    return replace(
        term,
        values=[term.values[i] for i in kept],
        low=np.where(term.has_value, odd[term.low], 1).astype(np.int32),
        high=np.where(term.has_value, odd[term.high], 0).astype(np.int32),
        sets=term.sets and term.sets.recoded(odd),
    )


def concat(parts: Sequence[Stats]) -> Stats:
    """The entries of all parts one after the other; what one part does not know stays unknown for its entries."""
    if len(parts) == 1:
        return parts[0]
    names = {name: s.terms[name].type for s in parts for name in s.terms}
    terms = {}
    for name, type_ in names.items():
        found = [s.terms.get(name) or TermStats.unknown(type_, len(s)) for s in parts]
        if len({t.type.kind for t in found}) == 1:
            terms[name] = _concat_term(found)
    features = {}
    for name, feature in ((n, f) for s in parts for n, f in s.features.items()):
        bits = [s.features[name].bits if name in s.features else np.full(len(s), ANY, np.uint8) for s in parts]
        features[name] = Feature(feature.predicate, np.concatenate(bits))
    return Stats(np.concatenate([s.rows for s in parts]), terms, features)


def _concat_term(parts: Sequence[TermStats]) -> TermStats:
    values = united(*(t.values for t in parts))
    lows, highs, sets = [], [], []
    for t in parts:
        low, high = moved(t.values, values)
        lows.append(np.where(t.has_value, low[np.minimum(t.low, len(low) - 1)], 1))
        highs.append(np.where(t.has_value, high[np.minimum(t.high, len(high) - 1)], 0))
        recoded = t.sets.recoded(low) if t.sets else None
        for i in range(len(t.low)):
            codes = recoded.of(i) if recoded else None
            sets.append(None if codes is None else tuple(codes.tolist()))
    return TermStats(
        parts[0].type,
        values,
        np.concatenate(lows).astype(np.int32),
        np.concatenate(highs).astype(np.int32),
        np.concatenate([t.nulls for t in parts]),
        np.concatenate([t.nan for t in parts]),
        DistinctSets.build(sets) if any(s is not None for s in sets) else None,
    )


def agree(said: Stats, fresh: Stats) -> Bools:
    """Of each entry, whether two looks at it say the same; only the fresh one has to have sets of values."""
    n, both = len(said), concat([said, fresh])
    same: Bools = both.rows[:n] == both.rows[n:]
    for t in both.terms.values():
        for values in (t.low, t.high, t.nulls, t.nan):
            same = same & (values[:n] == values[n:])
        if t.sets:
            said_set, fresh_set = t.sets.set_of[:n], t.sets.set_of[n:]
            same = same & ((said_set < 0) | (said_set == fresh_set))
    for feature in both.features.values():
        same = same & (feature.bits[:n] == feature.bits[n:])
    return same


def repeat(stats: Stats, owner: Ints) -> Stats:
    """Entry i of the result is what is known of entry `owner[i]`."""
    terms = {
        name: replace(
            t,
            low=t.low[owner],
            high=t.high[owner],
            nulls=t.nulls[owner],
            nan=t.nan[owner],
            sets=t.sets and replace(t.sets, set_of=t.sets.set_of[owner]),
        )
        for name, t in stats.terms.items()
    }
    features = {name: replace(f, bits=f.bits[owner]) for name, f in stats.features.items()}
    return Stats(stats.rows[owner], terms, features)


def regroup(stats: Stats, to: npt.ArrayLike, n: int, max_distinct: int = MAX_DISTINCT) -> Stats:
    """Join entries: entry i becomes a part of entry `to[i]` of n (cells into blocks, files into tables)."""
    target = np.asarray(to, np.int64)
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=n)
    terms = {name: _regroup_term(t, target, order, n, max_distinct) for name, t in stats.terms.items()}
    features = {
        name: Feature(f.predicate, _reduce(np.bitwise_or, f.bits[order], counts, 0))
        for name, f in stats.features.items()
    }
    return Stats(np.bincount(target, weights=stats.rows, minlength=n).astype(np.int64), terms, features)


def _regroup_term(t: TermStats, target: Ints, order: Ints, n: int, max_distinct: int) -> TermStats:
    counts = np.bincount(target, minlength=n)
    filled = order[t.has_value[order]]
    values_in = np.bincount(target[filled], minlength=n)
    low = _reduce(np.minimum, t.low[filled], values_in, 1)
    high = _reduce(np.maximum, t.high[filled], values_in, 0)
    nulls = _reduce(np.add, t.nulls[order], counts, 0)
    unsure = _reduce(np.logical_or, (t.nulls == UNKNOWN_NULLS)[order], counts, 0)
    sets = None
    if t.sets:
        joined: list[set[int] | None] = [set() for _ in range(n)]
        for i, k in enumerate(target.tolist()):
            codes, so_far = t.sets.of(i), joined[k]
            if so_far is not None:
                so_far.update([] if codes is None else codes.tolist())
                if codes is None or len(so_far) > max_distinct:
                    joined[k] = None
        sets = DistinctSets.build([None if s is None else tuple(sorted(s)) for s in joined])
    return compact(
        TermStats(
            t.type,
            t.values,
            low,
            high,
            np.where(unsure, UNKNOWN_NULLS, nulls),
            _reduce(np.logical_or, t.nan[order], counts, 0).astype(bool),
            sets,
        )
    )
