"""Answers aggregates from statistics for files that match as a whole; other files are scanned, and the results added.

SELECT count(*), max(x) WHERE x > 6:

    file 0   5, 6            no row can match      skipped, adds nothing
    file 1   7, 9            matches as a whole    skipped, adds (2, 9)
    file 2   7, 8, deleted   matches as a whole    opened: the row with the greatest value may be deleted
    file 3   5, 8            may match             opened

For max(x) without the count, files 2 and 3 are skipped too: none of their values is above 9.

Only exact numbers are added:

    count(*)    rows that are not deleted
    count(x)    these without the NULLs; with deletes only if no record is NULL, or all are
    sum(x)      the sum that the index has for the file, where no row is deleted
    min, max    a bound that some row has (an odd code), where no row is deleted; not of texts whose values are not
                listed, since a footer may have cut them; not zero, which may be -0.0; not beside NaN
    GROUP BY x  a file with one value of x, NULL included

Where all records have one value, deletes do not matter to `min`, `max` and the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from math import inf
from typing import TypeAlias

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import assert_never
from hedgerow.core.index.sums import sum_of
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS, MatchedFiles, TypedTerm
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.nodes import TRUE, Column, Predicate
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import T_BIT, Stats, TermStats, reduce_runs
from hedgerow.core.pruning.distinct_sets import UNKNOWN_SET
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.pruning.value_codes import ArrowValues, code_of

MAX_GROUPS = 10_000  # with more groups, it would take longer to build the plan than to read the files
_MAX_TABLE = 1 << 22  # entries of a lookup table with one entry for each possible number
_NULL = -1  # stands for NULL among the codes of values
_EXACT = Context(prec=100)  # Python rounds sums to 28 digits
_MAX_BIGINT = 2**63 - 1
_MAX_AS_DOUBLE = 2**53  # doubles have every integer up to it


@dataclass(frozen=True, slots=True)
class Count:
    """`count(of) FILTER (WHERE where)`; `of` is None for `count(*)`."""

    of: TypedTerm | None = None
    where: Predicate = TRUE


@dataclass(frozen=True, slots=True)
class Extreme:
    """`max(of)` if `greatest`, else `min(of)`, with the same filter as `Count`."""

    of: TypedTerm
    greatest: bool
    where: Predicate = TRUE


@dataclass(frozen=True, slots=True)
class Sum:
    """`sum(of)`, with the same filter as `Count`.

    `as_double`: Spark adds integers up as doubles, and decimals without their point, to divide the sum by a count.
    """

    of: TypedTerm
    where: Predicate = TRUE
    as_double: bool = False


Aggregate: TypeAlias = Count | Extreme | Sum
Group: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True)
class Partials:
    """Aggregates that statistics answer, and the files that are still to be scanned.

    Args:
        opened: the files to scan.
        rows: for each group, the aggregates over the skipped files; empty if these have no matching row. A group is
            the tuple of its GROUP BY values, with None for NULL; without GROUP BY, the only group is ().
    """

    opened: Bools
    rows: Mapping[Group, tuple[Value, ...]] = field(default_factory=dict)


def aggregate(
    stats: Stats, matched: MatchedFiles, groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]
) -> Partials:
    """Return the aggregates of the files that statistics can answer for.

    >>> import pyarrow as pa
    >>> from hedgerow.core.index.block_index import BlockIndex
    >>> from hedgerow.core.index.whole_matches import match_files
    >>> from hedgerow.core.predicates.nodes import Compare, col, lit
    >>> from hedgerow.core.predicates.types import Type
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([5, 6, 7, 9, 5, 8])}, entry=[0, 0, 1, 1, 2, 2], entries=3)
    >>> matched = match_files(BlockIndex(stats), Compare(col("x"), ">", lit(6)), stats.rows)
    >>> aggregate(stats, matched, (), (Count(), Extreme(TypedTerm(col("x"), Type("int")), greatest=True)))
    Partials(opened=array([False, False,  True]), rows={(): (2, 9)})
    """
    answered = matched.whole.copy()
    by = [_only_value(stats, matched, term) for term in groups]
    parts = [_part(stats, matched, a) for a in aggregates]
    for part in (*by, *parts):
        answered &= part.is_exact
    if not answered.any():
        return Partials(matched.opened)
    at = np.flatnonzero(answered)
    group_of, members = _numbered([part.values[at] for part in by], len(at))
    if len(members) > MAX_GROUPS:
        return Partials(matched.opened)
    count = len(members)
    columns = [_added(a, part, at, group_of, count) for a, part in zip(aggregates, parts, strict=True)]
    keys = [part.decoded(part.values[at[members]]) for part in by]
    of_group: list[Group] = list(zip(*keys, strict=True)) if by else [()]
    values: list[Group] = list(zip(*columns, strict=True)) if columns else [()] * count
    opened = matched.opened & ~answered
    if not groups:
        opened &= ~_changes_nothing(matched, aggregates, parts, at)
    return Partials(opened, dict(zip(of_group, values, strict=True)))


def add_up(aggregates: Sequence[Aggregate], parts: Iterable[Mapping[Group, tuple[Value, ...]]]) -> dict[Group, Group]:
    """Return the aggregates of all parts together.

    >>> add_up((Count(),), [{("a",): (2,)}, {("a",): (3,), ("b",): (1,)}])
    {('a',): (5,), ('b',): (1,)}
    """
    total: dict[Group, Group] = {}
    for part in parts:
        for group, values in part.items():
            so_far = total.get(group, values)
            is_new = group not in total
            pairs = zip(aggregates, so_far, values, strict=True)
            total[group] = values if is_new else tuple(_together(a, x, y) for a, x, y in pairs)
    return total


def _together(a: Aggregate, x: Value, y: Value) -> Value:
    if x is None or y is None:
        return y if x is None else x
    match a:
        case Count() | Sum():
            return _EXACT.add(x, y) if isinstance(x, Decimal) else x + y
        case Extreme(greatest=greatest):
            return max(x, y) if greatest else min(x, y)
    assert_never(a)


def may_overflow(files: Iterable[tuple[Stats, MatchedFiles]], a: Aggregate) -> bool:
    """True if a sum over some rows of the opened files may overflow BIGINT: the rows' order decides if Spark fails.

    >>> import pyarrow as pa
    >>> from hedgerow.core.index.block_index import BlockIndex
    >>> from hedgerow.core.index.whole_matches import match_files
    >>> from hedgerow.core.predicates.nodes import col
    >>> from hedgerow.core.predicates.types import Type
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([2**62, 1, -(2**62)]), col("y"): pa.array([7, 8, 9])})
    >>> files = [(stats, match_files(BlockIndex(stats), TRUE, stats.rows))]
    >>> [may_overflow(files, Sum(TypedTerm(col(name), Type("bigint")))) for name in "xy"]
    [True, False]
    """
    if not isinstance(a, Sum) or not (a.as_double or a.of.type.kind == kinds.INT):
        return False
    scale, most = 10**a.of.type.scale, _MAX_AS_DOUBLE if a.as_double else _MAX_BIGINT
    return sum(_greatest_sum(a.of.of(stats), matched, scale) for stats, matched in files) > most


def _greatest_sum(term: TermStats | None, matched: MatchedFiles, scale: int) -> float:
    """Return a number that no sum over rows of the opened files exceeds, in either direction; `scale`: times each."""
    opened = matched.opened
    if not opened.any():
        return 0
    if term is None or (matched.left[opened] == UNKNOWN_ROWS).any():
        return inf
    valued = opened & term.has_value
    if not valued.any():
        return 0
    ends = int(term.low[valued].min()), int(term.high[valued].max())
    if ends[0] % 2 == 0 or ends[1] % 2 == 0:
        return inf
    return int(matched.records[opened].sum()) * max(abs(int(term.values[end // 2] * scale)) for end in ends)


@dataclass(frozen=True)
class _Part:
    """A number for each file, and whether it is exact: a count, the code of a value, or _NULL.

    Files that are not `counted` add nothing, because the aggregate's filter is TRUE on none of their rows.
    """

    values: Ints
    is_exact: Bools
    counted: Bools | None = None
    stats: TermStats | None = None

    def decoded(self, codes: Ints) -> list[Value]:
        """Return the values that the codes stand for."""
        values = [] if self.stats is None else self.stats.values
        at = codes[codes != _NULL] // 2
        listed = iter(values.take(at) if isinstance(values, ArrowValues) else [values[i] for i in at.tolist()])
        return [None if code == _NULL else next(listed) for code in codes.tolist()]


def _part(stats: Stats, matched: MatchedFiles, a: Aggregate) -> _Part:
    match a:
        case Count():
            part = _rows(matched) if a.of is None else _rows_with_value(a.of.of(stats), matched)
        case Extreme():
            part = _extreme(a.of.of(stats), matched, a.greatest)
        case Sum():
            part = _sum(stats, matched, a.of)
        case _:
            assert_never(a)
    if a.where == TRUE:
        return part
    outcomes = possible_outcomes(a.where, stats)
    never, always = outcomes & T_BIT == 0, outcomes == T_BIT
    return _Part(part.values, never | (always & part.is_exact), always, part.stats)


def _rows(matched: MatchedFiles) -> _Part:
    return _Part(matched.left, matched.whole)


def _rows_with_value(term: TermStats | None, matched: MatchedFiles) -> _Part:
    if term is None:
        return _unknown(matched)
    all_null = _is_all_null(term, matched)
    is_exact = (term.nulls == 0) | all_null | ((term.nulls > 0) & ~matched.has_deletes)
    return _Part(np.where(all_null, 0, matched.left - term.nulls), is_exact)


def _extreme(term: TermStats | None, matched: MatchedFiles, greatest: bool) -> _Part:
    if term is None:
        return _unknown(matched)
    codes = (term.high if greatest else term.low).astype(np.int64)
    is_attained = term.has_value & (codes % 2 == 1) & ~matched.has_deletes & _is_uncut(term)
    if greatest:
        is_attained &= ~term.nan
    all_null = _is_all_null(term, matched)
    is_exact = (is_attained | _is_constant(term)) & ~_is_zero(term, codes) | all_null
    return _Part(np.where(all_null, _NULL, codes), is_exact, stats=term)


def _sum(stats: Stats, matched: MatchedFiles, of: TypedTerm) -> _Part:
    term = of.of(stats)
    sums = stats.terms.get(sum_of(of.term).sql) if isinstance(of.term, Column) else None
    if term is None or sums is None or sums.type.kind != of.type.kind:
        return _unknown(matched)
    codes, all_null = sums.low.astype(np.int64), _is_all_null(term, matched)
    is_exact = (sums.low == sums.high) & (codes % 2 == 1) & ~matched.has_deletes | all_null
    return _Part(np.where(all_null, _NULL, codes), is_exact, stats=sums)


def _only_value(stats: Stats, matched: MatchedFiles, group: TypedTerm) -> _Part:
    """Return the value that all rows of a file have."""
    term = group.of(stats)
    if term is None:
        return _unknown(matched)
    codes, all_null = term.low.astype(np.int64), _is_all_null(term, matched)
    is_exact = _is_constant(term) & ~_is_zero(term, codes) | all_null
    return _Part(np.where(all_null, _NULL, codes), is_exact, stats=term)


def _unknown(matched: MatchedFiles) -> _Part:
    return _Part(matched.left, np.zeros(len(matched.left), bool))


def _is_all_null(term: TermStats, matched: MatchedFiles) -> Bools:
    return np.asarray(~term.has_value & ~term.nan & (term.nulls == matched.records), bool)


def _is_constant(term: TermStats) -> Bools:
    """True for each file whose records all have one value: no other fits between equal bounds, cut or not."""
    return np.asarray((term.low == term.high) & (term.low % 2 == 1) & ~term.nan & (term.nulls == 0), bool)


def _is_uncut(term: TermStats) -> Bools:
    """True for each file whose bounds are values of the file. Parquet may cut a text, but not in its dictionary."""
    if term.type.kind not in (kinds.STRING, kinds.BINARY):
        return np.ones(len(term.low), bool)
    return np.zeros(len(term.low), bool) if term.sets is None else np.not_equal(term.sets.set_of, UNKNOWN_SET)


def _is_zero(term: TermStats, codes: Ints) -> Bools:
    """True for each code of the number zero among floats: statistics do not distinguish 0.0 and -0.0."""
    if term.type.kind != kinds.FLOAT:
        return np.zeros(len(codes), bool)
    zero = code_of(term.values, 0.0)
    return np.asarray((codes == zero) & (zero % 2 == 1), bool)


def _numbered(codes: Sequence[Ints], files: int) -> tuple[Ints, Ints]:
    """Return the number of each file's group, and one file of each group; without GROUP BY all files are one group."""
    if not codes:
        return np.zeros(files, np.int64), np.zeros(1, np.int64)
    group_of = np.zeros(files, np.int64)
    for of_term in codes:
        width = int(of_term.max(initial=0)) + 2
        group_of, members = _renumbered(group_of * width + of_term + 1)
    return group_of, members


def _renumbered(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the numbers as 0, 1, 2, ... in the same order, and for each new number one index at which it occurs.

    >>> [array.tolist() for array in _renumbered(np.array([7, 3, 9]))]
    [[1, 0, 2], [1, 0, 2]]
    """
    limit = int(numbers.max(initial=-1)) + 1
    if limit > _MAX_TABLE:
        _, members, dense = np.unique(numbers, return_index=True, return_inverse=True)
        return dense, members
    place_of = np.full(limit, -1, np.int64)  # far cheaper than a sort
    place_of[numbers] = np.arange(len(numbers))
    is_used = place_of >= 0
    return (np.cumsum(is_used) - 1)[numbers], place_of[is_used]


def _changes_nothing(matched: MatchedFiles, aggregates: Sequence[Aggregate], parts: Sequence[_Part], at: Ints) -> Bools:
    """True for each file whose bounds are within the minima and maxima over the files `at`."""
    within = np.not_equal(matched.left, UNKNOWN_ROWS)
    for a, part in zip(aggregates, parts, strict=True):
        term = part.stats
        if not isinstance(a, Extreme) or a.where != TRUE or term is None:
            return np.zeros(len(within), bool)
        codes = part.values[at]
        codes = codes[codes != _NULL]
        is_beaten = ~term.has_value
        if len(codes):
            is_beaten |= (term.high <= codes.max()) if a.greatest else (term.low >= codes.min())
        if a.greatest or not len(codes):
            is_beaten &= ~term.nan
        within &= is_beaten
    return within


def _added(a: Aggregate, part: _Part, at: Ints, group_of: Ints, groups: int) -> list[Value]:
    """Return the aggregate of each group over the files `at`."""
    counted = np.ones(len(at), bool) if part.counted is None else part.counted[at]
    values, group_of = part.values[at][counted], group_of[counted]
    match a:
        case Count():
            return list(map(int, np.bincount(group_of, weights=values, minlength=groups).tolist()))
        case Extreme(greatest=greatest):
            has_value = values != _NULL
            values, group_of = values[has_value], group_of[has_value]
            order = np.argsort(group_of, kind="stable") if groups > 1 else slice(None)
            best = reduce_runs(
                np.maximum if greatest else np.minimum, values[order], np.bincount(group_of, minlength=groups), _NULL
            )
            return part.decoded(best)
        case Sum():
            totals: list[Value] = [None] * groups
            for group, value in zip(group_of.tolist(), part.decoded(values), strict=True):
                totals[group] = _together(a, totals[group], value)
            return totals
    assert_never(a)
