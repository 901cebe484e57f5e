"""Statistics of n entries (blocks, cells, tree leaves, or single rows), as numpy arrays.

A term has a minimum, a maximum, NULLs, NaN and, if they are few, its distinct values. A noted condition has the set of
outcomes TRUE, FALSE and NULL that it may have. Unknowns are stored as the widest value, so a forgotten check cannot
skip data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Bits, Bools, Ints, unique_numbers
from hedgerow.core.on_use import mapped_on_use
from hedgerow.core.predicates.nodes import Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.predicates.values import Value, comparable
from hedgerow.core.pruning.distinct_sets import DistinctSets
from hedgerow.core.pruning.value_codes import (
    NAN_CODE,
    NULL_CODE,
    Codes,
    RankedColumn,
    code_of,
    is_rankable_type,
    one_chunk,
    rank_rows,
    values_at,
)
from hedgerow.core.pruning.value_filter import ValueFilter

# The three outcomes as bits; a set of outcomes is their sum.
F_BIT, T_BIT, N_BIT, ANY = 1, 2, 4, 7
BIT = {False: F_BIT, True: T_BIT, None: N_BIT}
# NOT of each set of outcomes: TRUE and FALSE change places.
NOT_BITS = np.array([(b & N_BIT) | (b & F_BIT) << 1 | (b & T_BIT) >> 1 for b in range(8)], np.uint8)


def has_several(bits: Bits) -> Bools:
    """True for each set of more than one outcome."""
    return np.not_equal(bits & (bits - np.uint8(1)), 0)


def looked_up(table: bytes, numbers: Bits) -> Bits:
    """Return `table[number]` of each number; `table` has 256 bytes. Twice as fast as numpy's own."""
    return np.frombuffer(bytearray(numbers).translate(table), np.uint8)


MAX_DISTINCT = 64  # entries with more values get no set of values
MAX_WORDS = 512  # entries with more words in a column's texts get no set of words
UNKNOWN_NULLS = -1
GROUP, MIN_GROUPED = 64, 1 << 14  # entries of a group; fewer entries than that are decided one by one


@dataclass(frozen=True)
class TermStats:
    """The statistics of one term. An entry without values (only NULL, NaN or no rows) has `low > high`.

    `words` holds the statistics of the words in the texts, as if each word were a value. An entry without a set of
    words is unknown.
    """

    type: Type
    values: Sequence[Value]
    low: Codes
    high: Codes
    nulls: Ints
    nan: Bools
    sets: DistinctSets | None = None
    words: TermStats | None = None

    @cached_property
    def may_null(self) -> Bools:
        return np.not_equal(self.nulls, 0)

    @cached_property
    def has_value(self) -> Bools:
        return np.less_equal(self.low, self.high)

    @cached_property
    def has_nulls(self) -> bool:
        """True if some entry may have NULLs."""
        return bool(self.may_null.any())

    @cached_property
    def has_nan(self) -> bool:
        return bool(self.nan.any())

    @cached_property
    def lacks_values(self) -> bool:
        """True if some entry has no value."""
        return not self.has_value.all()

    @property
    def is_unknown(self) -> Bools:
        """True for each entry that is as `unknown` makes it."""
        no_bounds = (self.low == 0) & (self.high == 2 * len(self.values))
        return np.asarray(no_bounds & self.nan & (self.nulls == UNKNOWN_NULLS), bool)

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
        words: TermStats | None = None,
    ) -> TermStats:
        """Build statistics from Python values, entry by entry; bounds of None mean that the entry has no value."""
        mentioned = {b.value for pair in bounds if pair for b in pair if b.is_known}
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
        may_nan = np.full(len(bounds), type_.kind == "float") if nan is None else np.array(nan, bool)
        return TermStats(
            type_,
            values,
            np.array(low, np.int32).reshape(-1),
            np.array(high, np.int32).reshape(-1),
            np.array(nulls, np.int64).reshape(-1),
            may_nan.reshape(-1),
            coded,
            words,
        )

    @staticmethod
    def of_sets(type_: Type, sets: Sequence[Collection[Value] | None]) -> TermStats:
        """Build statistics from the set of values of each entry; None means that the set is unknown."""
        bounds = [(UNBOUNDED, UNBOUNDED) if s is None else _ends_of(s) for s in sets]
        return TermStats.build(type_, bounds, [0] * len(sets), sets=[None if s is None else sorted(s) for s in sets])


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an entry's values: at `value`, just below it (gap -1), just above it (gap 1), or unknown."""

    value: Value = None
    gap: int = 0
    is_known: bool = True


UNBOUNDED = Bound(is_known=False)


def _ends_of(values: Collection[Value]) -> tuple[Bound, Bound] | None:
    return (Bound(min(values)), Bound(max(values))) if values else None


def _code(values: Sequence[Value], bound: Bound, unknown: int) -> int:
    return code_of(values, bound.value, bound.gap) if bound.is_known else unknown


@dataclass(frozen=True)
class NotedCondition:
    """A predicate that was evaluated on all rows of each entry, and the outcomes that occurred, as bits."""

    predicate: Predicate
    bits: Bits


@dataclass(frozen=True)
class Stats:
    """The statistics of n entries; the keys are the canonical texts of terms and conditions.

    `filters`: the filters of look-ups, where an opened table has some. Statistics made from these have none.
    `are_sorted`: False if neighbours have nothing in common, as rows of a sample, so that groups of them tell nothing.
    """

    rows: Ints
    terms: Mapping[str, TermStats]
    conditions: Mapping[str, NotedCondition]
    filters: Mapping[str, ValueFilter] = field(default_factory=dict)
    are_sorted: bool = True

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def empty(self) -> Ints:
        """The entries without rows."""
        return np.flatnonzero(self.rows == 0)

    @cached_property
    def groups(self) -> Stats | None:
        """The statistics of runs of `GROUP` neighbours; None if they would tell nothing."""
        if len(self) < MIN_GROUPED or not self.are_sorted:
            return None
        starts = np.arange(0, len(self), GROUP)
        conditions = {
            name: NotedCondition(c.predicate, np.bitwise_or.reduceat(c.bits, starts))
            for name, c in self.conditions.items()
        }
        terms = mapped_on_use(self.terms, self.terms, lambda term: _of_groups(term, starts))
        has_rows = np.logical_or.reduceat(self.rows != 0, starts)  # not their sum: unknown rows are below zero
        return Stats(has_rows.astype(np.int64), terms, conditions)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """A cache for values derived from these statistics (joint codes of two terms, conditions by term)."""
        return {}

    def only(self, has_term: Callable[[str], bool], has_condition: Callable[[Predicate], bool]) -> Stats:
        """Return the statistics of the terms and conditions for which these are true."""
        terms = mapped_on_use(self.terms, filter(has_term, self.terms), lambda term: term)
        conditions = {name: c for name, c in self.conditions.items() if has_condition(c.predicate)}
        return Stats(self.rows, terms, conditions)


Selection: TypeAlias = "slice | Ints"


@dataclass(frozen=True, slots=True)
class Part:
    """Some entries of statistics: how many, and their places."""

    size: int
    at: Selection = field(default_factory=lambda: slice(None))

    def some(self, places: Ints) -> Part:
        """Return the entries at these places among these entries."""
        return Part(len(places), places if isinstance(self.at, slice) else self.at[places])


def collect(
    columns: Mapping[Term, pa.Array | pa.ChunkedArray | RankedColumn],
    outcomes: Mapping[Predicate, Bits] | None = None,
    entry: npt.ArrayLike | None = None,
    entries: int = 1,
    max_distinct: int = MAX_DISTINCT,
) -> Stats:
    """Collect statistics from rows: row i belongs to entry `entry[i]` (by default to entry 0).

    `outcomes` holds the outcome bits of each condition on each row. Columns whose order is unknown are left out.

    >>> from hedgerow.core.predicates.nodes import col
    >>> stats = collect({col("x"): pa.array([3, None, 5])})
    >>> t = stats.terms["x"]
    >>> [t.values[c // 2] for c in (t.low[0], t.high[0])], int(t.nulls[0])
    ([3, 5], 1)
    """
    if entry is None and not any(isinstance(c, RankedColumn) for c in columns.values()):
        return _collect_one_entry(columns, outcomes or {}, max_distinct)
    ranked = {term: c if isinstance(c, RankedColumn) else rank_rows(c) for term, c in columns.items() if is_rankable(c)}
    sizes = [len(c) for c in columns.values() if not isinstance(c, RankedColumn)]
    sizes += [len(c.places) for c in ranked.values()] + [len(b) for b in (outcomes or {}).values()]
    entry_of = np.zeros(sizes[0], np.int64) if entry is None else np.asarray(entry, np.int64)
    order = np.argsort(entry_of, kind="stable")
    rows = np.bincount(entry_of, minlength=entries)
    terms = {term_text(term): _collect_term(c, entry_of, order, rows, max_distinct) for term, c in ranked.items()}
    conditions = {
        predicate_text(p): NotedCondition(p, reduce_runs(np.bitwise_or, b[order], rows, 0))
        for p, b in (outcomes or {}).items()
    }
    return Stats(rows, terms, conditions)


def _collect_one_entry(
    columns: Mapping[Term, pa.Array | pa.ChunkedArray], outcomes: Mapping[Predicate, Bits], max_distinct: int
) -> Stats:
    """Collect statistics of all rows as one entry; faster, since Arrow finds minimum and maximum without ranks."""
    sizes = [len(c) for c in (*columns.values(), *outcomes.values())]
    terms = {
        term_text(t): _collect_term_of_one_entry(one_chunk(c), max_distinct)
        for t, c in columns.items()
        if is_rankable(c)
    }
    conditions = {
        predicate_text(p): NotedCondition(p, np.bitwise_or.reduce(b, keepdims=True)) for p, b in outcomes.items()
    }
    return Stats(np.array(sizes[:1] or [0], np.int64), terms, conditions)


def _of_groups(t: TermStats, starts: Ints) -> TermStats:
    """Return the term's statistics of the runs of entries that begin at `starts`; words are left out."""
    low = np.minimum.reduceat(np.where(t.has_value, t.low, np.int32(2 * len(t.values) + 1)), starts)
    high = np.maximum.reduceat(np.where(t.has_value, t.high, np.int32(-1)), starts)
    has_value = low <= high
    nulls = np.add.reduceat(t.nulls, starts)
    nulls[np.logical_or.reduceat(t.nulls == UNKNOWN_NULLS, starts)] = UNKNOWN_NULLS
    return TermStats(
        t.type,
        t.values,
        np.where(has_value, low, np.int32(1)),
        np.where(has_value, high, np.int32(0)),
        nulls,
        np.logical_or.reduceat(t.nan, starts),
        t.sets and t.sets.united(np.arange(len(t.low)) // GROUP, len(starts), MAX_DISTINCT),
    )


def _collect_term_of_one_entry(array: pa.Array, max_distinct: int) -> TermStats:
    values = comparable(pc.dictionary_decode(array) if pa.types.is_dictionary(array.type) else array)
    has_nan = False
    if pa.types.is_floating(values.type):
        is_nan = pc.is_nan(values)
        has_nan = pc.any(is_nan).as_py() or False
        values = pc.if_else(is_nan, None, values) if has_nan else values
    ends = pc.min_max(values).as_py()
    distinct = None
    may_be_few = max_distinct and len(pc.unique(values[: 4 * max_distinct])) <= max_distinct + 1
    if may_be_few:
        unique = pc.unique(values).drop_null()
        distinct = unique.to_pylist() if len(unique) <= max_distinct else None
    bounds = None if ends["min"] is None else (Bound(ends["min"]), Bound(ends["max"]))
    return TermStats.build(
        Type.of_arrow(array.type), [bounds], [array.null_count], [has_nan], [distinct] if max_distinct else None
    )


def is_rankable(column: pa.Array | pa.ChunkedArray | RankedColumn) -> bool:
    """True if Hedgerow knows the order of the column's values in Spark."""
    return isinstance(column, RankedColumn) or is_rankable_type(column.type)


def _collect_term(column: RankedColumn, entry: Ints, order: Ints, rows: Ints, max_distinct: int) -> TermStats:
    values, places = column.values, column.places
    n = len(rows)
    has_value = places >= 0  # not NULL, not NaN
    sorted_rows = order[has_value[order]]
    counts = np.bincount(entry[has_value], minlength=n)
    low = reduce_runs(np.minimum, places[sorted_rows], counts, 0) * 2 + 1
    high = reduce_runs(np.maximum, places[sorted_rows], counts, -1) * 2 + 1
    high[counts == 0] = 0
    sets = None
    if max_distinct:
        width = max(len(values), 1)
        owner, value = np.divmod(unique_numbers(entry[has_value] * width + places[has_value], n * width), width)
        sets = DistinctSets.of_pairs(owner, value * 2 + 1, np.zeros(n, bool), max_distinct)
    return drop_unused_values(
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


def reduce_runs(f: np.ufunc, rows: npt.NDArray[Any], counts: Ints, empty: int) -> npt.NDArray[Any]:
    """Reduce consecutive runs of `counts` rows with `f`; a run of no rows gives `empty`."""
    out = np.full(len(counts), empty, rows.dtype)
    filled = counts > 0
    if filled.any():
        starts = (np.cumsum(counts) - counts)[filled]
        out[filled] = f.reduceat(rows, starts)
    return out


def drop_unused_values(term: TermStats) -> TermStats:
    """Return the same statistics without the values that no bound and no set needs."""
    used = np.zeros(len(term.values), bool)
    for codes in (term.low, term.high, term.sets.codes if term.sets else term.low):
        # A gap is described by its neighbours, so both are needed.
        for c in (codes, codes[codes % 2 == 0] - 1, codes[codes % 2 == 0] + 1):
            inside = c[(c % 2 == 1) & (c > 0) & (c < 2 * len(term.values))]
            used[inside // 2] = True
    if used.all():
        return term
    used_places = np.flatnonzero(used)
    new_code = np.full(2 * len(term.values) + 2, -1, np.int32)
    new_code[used_places * 2 + 1] = np.arange(len(used_places), dtype=np.int32) * 2 + 1
    kept_below_gap = np.cumsum(np.concatenate([[0], used])).astype(np.int32)
    new_code[0::2] = kept_below_gap * 2
    return replace(
        term,
        values=values_at(term.values, used_places),
        low=np.where(term.has_value, new_code[term.low], 1).astype(np.int32),
        high=np.where(term.has_value, new_code[term.high], 0).astype(np.int32),
        sets=term.sets and term.sets.recoded(new_code),
    )
