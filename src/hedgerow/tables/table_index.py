"""The indexes of all parts of a table as one, for queries that need fewer files than their WHERE does.

    ORDER BY x LIMIT 100     a threshold: files beyond it stay closed      `first_rows`
    LIMIT 10                 a few files that hold ten matching rows       `any_rows`
    count(*), sum(x)         values to which the scan of the rest is added `aggregates`

The condition must be the whole condition of the scan. For WHERE a weaker one would be enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.errors import assert_never
from hedgerow.core.index.aggregates import Aggregate, Count, Extreme, Partials, Sum, add_up, aggregate, may_overflow
from hedgerow.core.index.any_rows import any_rows
from hedgerow.core.index.top_k import Order, first_rows
from hedgerow.core.index.whole_matches import UNKNOWN_ROWS, MatchedFiles, TypedTerm, match_files
from hedgerow.core.predicates.nodes import TRUE, Column, Predicate, Term
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import INT, OTHER, Type
from hedgerow.core.pruning.block_stats import TermStats
from hedgerow.core.workload.wanted_rows import Aggregates, AnyRows, Function, Top, WantedRows
from hedgerow.tables.part import JoinedParts

_MAX_DIGITS_AS_DOUBLE = 11  # of a decimal: Spark sums it without its point, and gives an average four digits more


@dataclass(frozen=True)
class TableIndex:
    """The index of all parts. Entry i of every array is file i: the files of the first part, then of the next."""

    parts: Sequence[JoinedParts]
    _across: dict[TypedTerm, TermStats | None] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._rows)

    @cached_property
    def _rows(self) -> Ints:
        """The rows of each file; UNKNOWN_ROWS where the session may read others, or a later entry has the same name."""
        names = [name for part in self.parts for name in part.known.names]
        is_last = np.zeros(len(names), bool)
        is_last[list({name: place for place, name in enumerate(names)}.values())] = True
        is_sure = np.concatenate([np.zeros(0, bool), *(part.reads_alike for part in self.parts)])
        rows = np.concatenate([np.zeros(0, np.int64), *(part.index.blocks.rows for part in self.parts)])
        return np.where(is_last & is_sure, rows, UNKNOWN_ROWS)

    def rows_left(self, read_once: Bools, deleted: Mapping[int, int]) -> Ints:
        """Return the rows of each file that a scan reads, or UNKNOWN_ROWS.

        Args:
            read_once: True for each file that the scan lists exactly once.
            deleted: the deleted rows of files that have any; a negative number if it is not known how many.
        """
        left = np.where(read_once, self._rows, UNKNOWN_ROWS)
        for file, rows in deleted.items():
            if left[file] != UNKNOWN_ROWS:
                left[file] = left[file] - rows if 0 <= rows <= left[file] else UNKNOWN_ROWS
        return left

    def files_for(self, wanted: WantedRows, p: Predicate, left: Ints, schema: Mapping[str, Type]) -> Bools | None:
        """Return the files to open for what a query wants of the rows on which `p` is TRUE; None if WHERE decides."""
        match wanted:
            case AnyRows(rows):
                return self.any_rows(p, left, rows)
            case Top(column, descending, rows, nulls_first):
                return self.first_rows(p, left, Order(self._typed(column, schema), descending, nulls_first), rows)
            case Aggregates(values, groups):
                by = [self._typed(term, schema) for term in groups]
                parts = [a for value in values for a in self._aggregates_of(*value, schema)]
                partials = self.aggregates(p, left, by, parts)
                return partials.opened if partials.rows else None
        assert_never(wanted)

    def _aggregates_of(self, name: Function, column: Column | None, schema: Mapping[str, Type]) -> Sequence[Aggregate]:
        """Return the aggregates from which Spark computes a function."""
        if column is None:
            return [Count()]
        of = self._typed(column, schema)
        match name:
            case "avg":  # Spark adds up as doubles what has at most eleven digits
                return [Sum(of, as_double=of.type.kind == INT or of.type.precision <= _MAX_DIGITS_AS_DOUBLE), Count(of)]
            case "count":
                return [Count(of)]
            case "sum":
                return [Sum(of)]
        return [Extreme(of, greatest=name == "max")]

    def _typed(self, term: Term, schema: Mapping[str, Type]) -> TypedTerm:
        name = term_text(term)
        types = [part.index.blocks.terms[name].type for part in self.parts if name in part.index.blocks.terms]
        return TypedTerm(term, schema.get(name) or next(iter(types), Type(OTHER)))

    def first_rows(self, p: Predicate, left: Ints, order: Order, k: int) -> Bools | None:
        """Return the files to open for the first `k` rows on which `p` is TRUE; None if too few are sure."""
        if order.by not in self._across:
            self._across[order.by] = order.by.across([part.index.blocks for part in self.parts])
        return first_rows(self._matched(p, left), self._across[order.by], order, k)

    def any_rows(self, p: Predicate, left: Ints, k: int) -> Bools | None:
        """Return files that surely hold `k` rows on which `p` is TRUE; None if there are too few."""
        return any_rows(self._matched(p, left), k)

    def aggregates(
        self, p: Predicate, left: Ints, groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]
    ) -> Partials:
        """Return the aggregates over skipped files, of the rows on which `p` is TRUE, and the files to scan."""
        stats = [part.index.blocks for part in self.parts]
        files = list(zip(stats, self._by_part(p, left), strict=True))
        if any(may_overflow(files, a) for a in aggregates):
            return Partials(MatchedFiles.concat([matched for _, matched in files]).opened)
        by_part = [aggregate(stats, matched, groups, aggregates) for stats, matched in files]
        opened = np.concatenate([np.zeros(0, bool), *(partials.opened for partials in by_part)])
        return Partials(opened, add_up(aggregates, [partials.rows for partials in by_part]))

    def may_answer(self, groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]) -> bool:
        """True if some condition leaves the aggregates of a file to its statistics."""
        every = zip(self.parts, self._by_part(TRUE, self._rows), strict=True)
        return any(
            (matched.opened & ~aggregate(part.index.blocks, matched, groups, aggregates).opened).any()
            for part, matched in every
        )

    def _matched(self, p: Predicate, left: Ints) -> MatchedFiles:
        return MatchedFiles.concat(self._by_part(p, left))

    def _by_part(self, p: Predicate, left: Ints) -> list[MatchedFiles]:
        ends = np.cumsum([len(part.known) for part in self.parts], dtype=np.int64)[:-1]
        of_parts = np.split(left, ends)[: len(self.parts)]  # nothing, split, is one piece
        return [match_files(part.index, p, rows) for part, rows in zip(self.parts, of_parts, strict=True)]
