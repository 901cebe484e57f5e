"""Simulates the filters of look-ups that `apply` would build, from rows in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from zlib import crc32

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.learning.sample import Sample
from hedgerow.core.learning.virtual_blocks import distinct_in_table, values_by_chao
from hedgerow.core.predicates.nodes import Column
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import Stats
from hedgerow.core.pruning.row_batch import Rows
from hedgerow.core.pruning.value_codes import RankedColumn, code_of
from hedgerow.core.pruning.value_filter import LEAST_BYTES, best_shape
from hedgerow.tables.lookups import columns_that_gain, pays_to_filter


@dataclass(frozen=True)
class ExpectedFilter:
    """The filter of a column that is not built yet: it knows the rows in memory, guesses where the other rows of their
    values are, and errs as often as a real one.

    Args:
        file: the file of each row in memory.
        files: the number of files.
        fraction: the share of the table's rows that are in memory.
        rows_of_value: the mean rows of a value in the table.
        spread: the number of files over which the rows of a value are spread.
    """

    column: RankedColumn
    file: Ints
    files: int
    false_positives: float
    fraction: float
    rows_of_value: float
    spread: float

    def may_hold(self, kind: str, values: Sequence[Value]) -> Bools:
        if kind != self.column.type.kind:
            return np.ones(self.files, bool)
        codes = [code_of(self.column.values, value) for value in values]
        places = [code // 2 for code in codes if code % 2 == 1]
        is_value = np.isin(self.column.places, places)
        holds = np.zeros(self.files, bool)
        holds[self.file[is_value]] = True
        misses = np.full(self.files, (1 - self.false_positives) ** len(values))
        rows = int(is_value.sum()) / len(values)
        for code in codes:
            is_within = ~holds & (2 * self._bounds[0] < code + 1) & (code < 2 * self._bounds[1] + 2)
            misses[is_within] *= 1 - min(1.0, self._more_files(rows) / max(1, int(is_within.sum())))
        seed = crc32(repr(sorted(map(repr, values))).encode())
        may_hold: Bools = holds | (np.random.default_rng(seed).random(self.files) > misses)
        return may_hold

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints]:
        """The least and the greatest place of a value in each file."""
        has_value = self.column.places >= 0
        low, high = np.full(self.files, len(self.column.values)), np.full(self.files, -1)
        np.minimum.at(low, self.file[has_value], self.column.places[has_value])
        np.maximum.at(high, self.file[has_value], self.column.places[has_value])
        return low, high

    def _more_files(self, rows: float) -> float:
        """Guess how many files have a value besides those of its rows in memory, by the mean rows of a value."""
        known, more = max(1.0, rows), self.rows_of_value - 1
        if self.fraction >= 1 or (rows and more <= 0):
            return 0.0
        if not rows:  # of a value that no row in memory has
            return self.spread * (1 - exp(-self.rows_of_value / self.spread))
        unseen = known / (self.fraction + 1 / more) - (known - 1)  # as in `VirtualBlocks`; one row is certain
        return (self.spread - min(known, self.spread)) * (1 - exp(-unseen / self.spread))


def expected_filters(
    passed: Mapping[Column, Sequence[int]], drawn: Sample, rows: Rows, file: Ints, stats: Stats, max_bytes: float
) -> dict[str, ExpectedFilter]:
    """Return the filters that `build_lookups` would build, by the text of their column.

    Args:
        passed: see `files_let_pass`.
        rows: those in memory: first the drawn ones, then others that queries look up.
        file: the file of each.
        stats: those of the files.
        max_bytes: all filters together have at most so many bytes.
    """
    filters = dict[str, ExpectedFilter]()
    if max_bytes < LEAST_BYTES:
        return filters
    ranked = {c: drawn.rows.ranks(c) for c, counts in passed.items() if pays_to_filter(counts)}
    in_all = {c: distinct_in_table(drawn, c) for c in ranked}
    of_drawn = file[: len(drawn)]
    distinct = {
        c: _distinct_in_files(column, in_all[c], of_drawn, stats.rows, drawn.fraction) for c, column in ranked.items()
    }
    for column in columns_that_gain(passed, distinct, {c: round(n) for c, n in in_all.items()}):
        shape = best_shape(distinct[column], max_bytes)
        if shape is not None:
            errors = shape.false_positives(distinct[column])
            filters[term_text(column)] = ExpectedFilter(
                rows.ranks(column),
                file,
                len(stats),
                errors,
                drawn.fraction,
                drawn.table_rows / in_all[column],
                _spread(ranked[column], of_drawn, len(stats)),
            )
            max_bytes -= shape.stored_bytes(distinct[column])
    return filters


def _spread(column: RankedColumn, file: Ints, files: int) -> float:
    """Return over how many files the rows of a value are spread, by how rarely two of them share a file."""
    has_value = column.places >= 0
    of_value = np.bincount(column.places[has_value])
    _, of_both = np.unique(column.places[has_value] * np.int64(files) + file[has_value], return_counts=True)
    pairs, in_one_file = (float((n * (n - 1)).sum()) for n in (of_value, of_both))
    return min(float(files), (pairs + 1) / (in_one_file + 1 / files))


def _distinct_in_files(column: RankedColumn, in_all: float, file: Ints, rows: Ints, fraction: float) -> Ints:
    """Return about how many values each file has, at most `in_all`, those of the table."""
    has_value = column.places >= 0
    domain = max(1, len(column.values))
    pairs, times = np.unique(file[has_value].astype(np.int64) * domain + column.places[has_value], return_counts=True)
    known, once, twice = (
        np.bincount(pairs[chosen] // domain, minlength=len(rows)) for chosen in (times > 0, times == 1, times == 2)
    )
    if fraction >= 1:
        return known
    guessed: Ints = values_by_chao(known, once, twice).astype(np.int64)
    return np.minimum(np.minimum(guessed, max(1, round(in_all))), rows)
