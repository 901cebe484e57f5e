"""Skip the files that cannot hold one of the first k rows of an order.

Files that match as a whole guarantee rows. Once they guarantee k rows up to some value, no row beyond it is needed.
ORDER BY x LIMIT 5, where each file has 3 rows:

    file 0   |-----|                   matches as a whole
    file 1      |--------|             matches as a whole: 6 rows up to here, so this is the threshold
    file 2         |----------|        may match; starts below the threshold: open
    file 3               |--------|    starts at the threshold, so it may tie: open
    file 4                  |-----|    starts beyond the threshold: skipped

The order is a line of places; the first row comes first. DESC reverses codes and NaN, which is the greatest value.

    place        0       1 ... 2n + 1      2n + 2     2n + 3
    ascending    NULLS   codes 0 ... 2n    NaN        NULLS
                 FIRST                                LAST

An even code stands for some value in a gap. Its end of the gap is not attained, and two values in one gap may be in
any order. So a file is skipped only if its first place is strictly greater than the threshold:

    values           b         f         k
    threshold             4                   the k-th row is below k, perhaps above f
    file starts at        4                   above f, perhaps below the k-th row: open
    file starts at             5              at k, so it is after the k-th row: skipped

Where too few files match as a whole, a query can look for the threshold itself: it reads a few files first. The k-th of
their matching rows is a threshold, and most other files lie beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS, MatchedFiles, TypedTerm
from hedgerow.core.predicates import types as kinds
from hedgerow.core.predicates.values import Value, canonical
from hedgerow.core.pruning.block_stats import UNKNOWN_NULLS, TermStats
from hedgerow.core.pruning.value_codes import Codes

_PROBED = 1 / 16  # of the rows in the files to open
_FEWEST, _FEWEST_IF_SURE = 32, 8  # files to open; with fewer, there is little to gain
_FEWEST_ROWS = 1_000_000  # they are read in the time that a probe takes


@dataclass(frozen=True, slots=True)
class Order:
    """The first term of an ORDER BY. Later terms only break ties."""

    by: TypedTerm
    descending: bool = False
    nulls_first: bool = True


def first_rows(matched: MatchedFiles, stats: TermStats | None, order: Order, k: int) -> Bools | None:
    """Return the files to open for the first `k` rows, as a mask; None if too few rows are guaranteed.

    `stats`: those of the order's term, None if it has none.

    >>> import pyarrow as pa
    >>> from hedgerow.core.index.block_index import BlockIndex
    >>> from hedgerow.core.index.whole_matches import match_files
    >>> from hedgerow.core.predicates.nodes import TRUE, col
    >>> from hedgerow.core.predicates.types import Type
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([1, 2, 3, 4, 5, 6])}, entry=[0, 0, 1, 1, 2, 2], entries=3)
    >>> matched = match_files(BlockIndex(stats), TRUE, stats.rows)
    >>> first_rows(matched, stats.terms["x"], Order(TypedTerm(col("x"), Type("int")), descending=True), 3)
    array([False,  True,  True])
    """
    if k <= 0 or stats is None:
        return None
    line = _Line(stats, order)
    rows_up_to = np.cumsum(line.guaranteed_rows(matched)[: line.end])
    threshold = int(np.searchsorted(rows_up_to, k))
    return None if threshold == line.end else matched.opened & (line.first_places <= threshold)


@dataclass(frozen=True, slots=True)
class Probe:
    """The files in which a query looks for a threshold, and a value that no value of an opened file comes after."""

    files: Bools
    last_value: Value


def files_to_probe(matched: MatchedFiles, opened: Bools, stats: TermStats | None, order: Order, k: int) -> Probe | None:
    """Return the files in which a query should look for a threshold; None if that promises little.

    These are the files with the earliest ends. If they hold k matching rows, no file that starts after them is of use.
    Half of the files to open must be such files.
    """
    if stats is None or not _are_pushed(stats):
        return None
    line, with_value = _Line(stats, order), opened & stats.has_value
    is_bounded = (stats.low > 0) & (stats.high < 2 * len(stats.values)) & ~stats.nan
    by_end = np.flatnonzero(with_value & (matched.left != UNKNOWN_ROWS))
    if len(by_end) < _FEWEST_IF_SURE or not is_bounded[with_value].all():
        return None
    by_end = by_end[np.argsort(line.last_places[by_end], kind="stable")]
    rows = np.cumsum(matched.left[by_end])
    probed = by_end[: np.searchsorted(rows, rows[-1] * _PROBED) + 1]
    beyond = line.first_places[by_end] > line.last_places[probed[-1]]
    fewest = _FEWEST_IF_SURE if matched.guaranteed[probed].sum() >= k else _FEWEST
    if len(by_end) < fewest or rows[-1] < _FEWEST_ROWS or 2 * np.count_nonzero(beyond) < len(by_end):
        return None
    files = np.zeros(len(opened), bool)
    files[probed] = True
    return Probe(files, line.value_not_before(int(line.last_places[with_value].max())))


def _are_pushed(stats: TermStats) -> bool:
    """True if Spark compares the values with the bounds of row groups; it fails on times far outside the calendar."""
    match stats.type.kind:
        case kinds.INT | kinds.DECIMAL:
            return True
        case kinds.DATE | kinds.TIMESTAMP | kinds.TIMESTAMP_NTZ as kind:
            ends = (at.date() if kind == kinds.DATE else at for at in (datetime.min, datetime.max))
            first, last = (canonical(kind, at) for at in ends)
            return all(first <= value <= last for value in (*stats.values[:1], *stats.values[-1:]))
    return False


@dataclass(frozen=True)
class _Line:
    """The places of an order, as the text above draws them."""

    stats: TermStats
    order: Order

    @property
    def nan(self) -> int:
        """The code of NaN, which is above all gaps."""
        return 2 * len(self.stats.values) + 1

    @property
    def null(self) -> int:
        """The place of NULL."""
        return 0 if self.order.nulls_first else self.nan + 2

    @property
    def end(self) -> int:
        """The first place that is no threshold: nothing comes after NULL where it is last."""
        return self.nan + 2

    def _places(self, codes: Codes) -> Codes:
        return self.nan + 1 - codes if self.order.descending else codes + 1

    @cached_property
    def _ends(self) -> tuple[Codes, Codes]:
        """The first and the last place of the values of each file, NaN included; that of NULL if it has no value."""
        t = self.stats
        least, greatest = t.low, t.high
        if not t.has_value.all() or t.nan.any():
            least = np.where(t.has_value, least, np.int32(self.nan))
            greatest = np.where(t.nan, np.int32(self.nan), greatest)
        first, last = map(self._places, (greatest, least) if self.order.descending else (least, greatest))
        no_value = ~(t.has_value | t.nan)
        first[no_value] = last[no_value] = self.null
        return first, last

    @property
    def first_places(self) -> Codes:
        """The first place that a row of each file may have."""
        first, _ = self._ends
        return np.where(self.stats.may_null, np.int32(0), first) if self.order.nulls_first else first

    @property
    def last_places(self) -> Codes:
        """The last place that a value of each file may have; that of NULL if it has no value."""
        return self._ends[1]

    def value_not_before(self, place: int) -> Value:
        """Return the value at a place; that at the far end if it is a gap between two values."""
        code = self.nan + 1 - place if self.order.descending else place - 1
        return self.stats.values[(code - 1) // 2 if self.order.descending else code // 2]

    def guaranteed_rows(self, matched: MatchedFiles) -> Ints:
        """Return for each place how many rows surely have this place or an earlier one, each row counted once.

        A row of a file may be deleted. Then it is not known whether it was one of the NULLs:

            records   v v v v v N N N     3 NULLs, 8 records, 6 rows left
            worst     v v v v v N         NULLS FIRST: at least 3 - 2 rows are NULL; the others have a value at worst
                      v v v N N N         NULLS LAST: at least 6 - 3 rows have a value; nothing comes after the others
        """
        whole, (_, last) = matched.whole, self._ends
        rows, nulls = matched.left[whole], self.stats.nulls[whole]
        deleted = matched.records[whole] - rows
        surely_null = np.maximum(0, np.where(nulls == UNKNOWN_NULLS, 0, nulls - deleted))
        surely_value = np.maximum(0, np.where(nulls == UNKNOWN_NULLS, 0, rows - nulls))
        with_value = rows - surely_null if self.order.nulls_first else surely_value
        rows_at = np.bincount(last[whole], weights=with_value, minlength=self.end + 1).astype(np.int64)
        rows_at[self.null] += (rows - with_value).sum()
        return rows_at
