"""The indexes of all parts of a table as one, for queries that need fewer files than their WHERE does.

    ORDER BY x LIMIT 100     a threshold: files beyond it stay closed      `first_rows`
    LIMIT 10                 a few files that hold ten matching rows       `any_rows`
    count(*), sum(x)         values to which the scan of the rest is added `aggregates`

The condition must be the whole condition of the scan. For WHERE a weaker one would be enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.aggregates import Aggregate, Partials, add_up, aggregate, may_overflow
from hedgerow.core.index.any_rows import any_rows
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.top_k import Order, Probe, files_to_probe, first_rows
from hedgerow.core.index.whole_matches import MatchedFiles, TypedTerm, match_files
from hedgerow.core.predicates.nodes import TRUE, Predicate
from hedgerow.core.pruning.block_stats import TermStats


@dataclass(frozen=True)
class JoinedIndex:
    """The indexes of all parts. Entry i of every array is file i: the files of the first part, then of the next.

    `left` is everywhere the rows of each file that a scan reads, or UNKNOWN_ROWS.
    """

    indexes: Sequence[BlockIndex]
    _across: dict[TypedTerm, TermStats | None] = field(default_factory=dict, repr=False)

    def matched(self, p: Predicate, left: Ints) -> MatchedFiles:
        """Return how a condition matches each file."""
        return MatchedFiles.concat(self._by_part(p, left))

    def first_rows(self, matched: MatchedFiles, order: Order, k: int) -> Bools | None:
        """Return the files to open for the first `k` matching rows; None if too few are sure."""
        return first_rows(matched, self._stats_of(order.by), order, k)

    def probe(self, matched: MatchedFiles, order: Order, k: int, opened: Bools | None) -> Probe | None:
        """Return the files in which a query should look for a threshold; `opened`: those of `first_rows`."""
        return files_to_probe(matched, matched.opened if opened is None else opened, self._stats_of(order.by), order, k)

    def _stats_of(self, term: TypedTerm) -> TermStats | None:
        if term not in self._across:
            self._across[term] = term.across([index.blocks for index in self.indexes])
        return self._across[term]

    def any_rows(self, p: Predicate, left: Ints, k: int) -> Bools | None:
        """Return files that surely hold `k` rows on which `p` is TRUE; None if there are too few."""
        return any_rows(self.matched(p, left), k)

    def aggregates(
        self, p: Predicate, left: Ints, groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]
    ) -> Partials:
        """Return the aggregates over skipped files, of the rows on which `p` is TRUE, and the files to scan."""
        stats = [index.blocks for index in self.indexes]
        files = list(zip(stats, self._by_part(p, left), strict=True))
        if any(may_overflow(files, a) for a in aggregates):
            return Partials(MatchedFiles.concat([matched for _, matched in files]).opened)
        by_part = [aggregate(stats, matched, groups, aggregates) for stats, matched in files]
        opened = np.concatenate([np.zeros(0, bool), *(partials.opened for partials in by_part)])
        return Partials(opened, add_up(aggregates, [partials.rows for partials in by_part]))

    def may_answer(self, left: Ints, groups: Sequence[TypedTerm], aggregates: Sequence[Aggregate]) -> bool:
        """True if some condition leaves the aggregates of a file to its statistics."""
        every = zip(self.indexes, self._by_part(TRUE, left), strict=True)
        return any(
            (matched.opened & ~aggregate(index.blocks, matched, groups, aggregates).opened).any()
            for index, matched in every
        )

    def _by_part(self, p: Predicate, left: Ints) -> list[MatchedFiles]:
        ends = np.cumsum([len(index.blocks) for index in self.indexes], dtype=np.int64)[:-1]
        of_parts = np.split(left, ends)[: len(self.indexes)]  # nothing, split, is one piece
        return [match_files(index, p, rows) for index, rows in zip(self.indexes, of_parts, strict=True)]
