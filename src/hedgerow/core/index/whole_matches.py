"""Find the files that match a condition as a whole: a query gets all their rows, so statistics can answer for them.

    rows of the file     7, 9      7, 9, NULL      5, 7             7, 9, and one of them is deleted
    x > 6                {TRUE}    {TRUE, NULL}    {TRUE, FALSE}    {TRUE}
    matches as a whole   yes       no              no               yes
    rows it guarantees   2         0               0                1

Deletes leave the statistics as they are. So bounds stay bounds, but a minimum may be the value of a deleted row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.core.arrays import Bools, Ints
from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.predicates.nodes import Predicate, Term
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import Type
from hedgerow.core.pruning.block_stats import T_BIT, Stats, TermStats
from hedgerow.core.pruning.combine_stats import concat
from hedgerow.core.pruning.evaluator import possible_outcomes

UNKNOWN_ROWS = -1


@dataclass(frozen=True, slots=True)
class TypedTerm:
    """A term with the type that a query sees."""

    term: Term
    type: Type

    def of(self, stats: Stats) -> TermStats | None:
        """Return the term's statistics; None if there are none of its kind."""
        term_stats = stats.terms.get(term_text(self.term))
        return term_stats if term_stats is not None and term_stats.type.kind == self.type.kind else None

    def across(self, parts: Sequence[Stats]) -> TermStats | None:
        """Return the term's statistics over the entries of all parts; None if no part has any, or their kinds differ.

        Each part has its own list of values, so the codes of different parts are comparable only in this form.
        """
        if not parts:
            return None
        name = term_text(self.term)
        terms_of_parts = [{name: s.terms[name]} if name in s.terms else {} for s in parts]
        return self.of(concat([Stats(s.rows, terms, {}) for s, terms in zip(parts, terms_of_parts, strict=True)]))


@dataclass(frozen=True)
class MatchedFiles:
    """Files as a condition finds them: entry i describes file i of the index.

    Args:
        opened: may the file hold a matching row?
        whole: is the condition TRUE on all rows of the file, which are known to be some?
        records: the rows that the statistics describe.
        left: the rows without the deleted ones; UNKNOWN_ROWS if their number is not known.
    """

    opened: Bools
    whole: Bools
    records: Ints
    left: Ints

    @cached_property
    def guaranteed(self) -> Ints:
        """The rows that the query surely gets of each file."""
        return np.where(self.whole, self.left, 0)

    @cached_property
    def has_deletes(self) -> Bools:
        """True for each file that lost some of its rows, or may have."""
        return np.not_equal(self.left, self.records)

    @staticmethod
    def concat(parts: Sequence[MatchedFiles]) -> MatchedFiles:
        """Return the files of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        no_bools, no_rows = np.zeros(0, bool), np.zeros(0, np.int64)
        return MatchedFiles(
            np.concatenate([no_bools, *(p.opened for p in parts)]),
            np.concatenate([no_bools, *(p.whole for p in parts)]),
            np.concatenate([no_rows, *(p.records for p in parts)]),
            np.concatenate([no_rows, *(p.left for p in parts)]),
        )


def match_files(index: BlockIndex, p: Predicate, left: Ints) -> MatchedFiles:
    """Return how the condition matches each file; `left`: the rows of each that are not deleted, or UNKNOWN_ROWS.

    >>> import pyarrow as pa
    >>> from hedgerow.core.predicates.nodes import Compare, col, lit
    >>> from hedgerow.core.pruning.block_stats import collect
    >>> stats = collect({col("x"): pa.array([1, 4, 7, 8, 9])}, entry=[0, 1, 1, 2, 2], entries=3)
    >>> match_files(BlockIndex(stats), Compare(col("x"), ">", lit(5)), stats.rows).guaranteed
    array([0, 0, 2])
    """
    outcomes = possible_outcomes(p, index.blocks)
    opened = outcomes & T_BIT > 0
    if index.cells is not None:
        opened = index.choose_files(p, copies=False).opened
    opened = opened & (left != 0)
    return MatchedFiles(opened, opened & (outcomes == T_BIT) & (left > 0), index.blocks.rows, left)
