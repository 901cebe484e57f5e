"""A batch of rows in memory, evaluated column by column: the evaluator treats each row as an entry of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.core.arrays import Bits
from hedgerow.core.errors import LayoutError
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT, NotedCondition, Stats, collect, is_rankable
from hedgerow.core.pruning.evaluator import possible_outcomes
from hedgerow.core.pruning.value_codes import RankedColumn, rank_rows

_ONE_OUTCOME = np.isin(np.arange(8), (F_BIT, T_BIT, N_BIT))


@dataclass(frozen=True)
class Rows:
    """Rows as columns: the values of terms, and the outcome bits of predicates that Spark has already evaluated."""

    columns: Mapping[Term, pa.Array | pa.ChunkedArray | RankedColumn]
    truths: Mapping[Predicate, Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        for column in (*self.columns.values(), *self.truths.values()):
            return len(column.places if isinstance(column, RankedColumn) else column)
        return 0

    @staticmethod
    def of_table(table: pa.Table) -> Rows:
        return Rows({Column((name,)): table[name] for name in table.column_names})

    @cached_property
    def _evaluated_by_spark(self) -> dict[str, Bits]:
        return {predicate_text(p): bits for p, bits in self.truths.items()}

    @cached_property
    def ranked(self) -> dict[Term, RankedColumn]:
        """The columns by rank, without those whose order is unknown."""
        return {
            t: a if isinstance(a, RankedColumn) else rank_rows(a) for t, a in self.columns.items() if is_rankable(a)
        }

    @cached_property
    def _entries(self) -> Stats:
        n = len(self)
        collected = collect(self.ranked, None, np.arange(n), n, max_distinct=0) if self.ranked else None
        conditions = {predicate_text(p): NotedCondition(p, bits) for p, bits in self.truths.items()}
        return Stats(np.ones(n, np.int64), collected.terms if collected else {}, conditions, are_sorted=False)

    def evaluate(self, p: Predicate) -> Bits:
        """Return the outcome bit of `p` on each row; raise LayoutError if only Spark can evaluate it.

        >>> from hedgerow.core.predicates.nodes import Compare, col, lit
        >>> Rows({col("x"): pa.array([1, 9, None])}).evaluate(Compare(col("x"), ">", lit(5))).tolist()
        [1, 2, 4]
        """
        by_spark = self._evaluated_by_spark.get(predicate_text(p))
        if by_spark is not None:
            return by_spark
        bits = possible_outcomes(p, self._entries)
        if not _ONE_OUTCOME[bits].all():
            raise LayoutError(f"only Spark can evaluate {predicate_text(p)}, and its outcomes are not among the rows'")
        return bits

    def ranks(self, term: Term) -> RankedColumn:
        """Return a term's column by rank; raise LayoutError if the rows have no such term."""
        for own_term, ranked in self.ranked.items():
            if term_text(own_term) == term_text(term):
                return ranked
        raise LayoutError(f"the rows have no column for {term_text(term)}")

    def distinct(self, term: Term) -> int:
        """Return the number of different values of a term; 0 if the rows have no such term."""
        return next((len(r.values) for own_term, r in self.ranked.items() if term_text(own_term) == term_text(term)), 0)

    def stats(self, entry: npt.NDArray[Any], entries: int) -> Stats:
        """Collect statistics of these rows, where row i belongs to entry `entry[i]`."""
        return collect(self.ranked, self.truths, entry, entries)

    def with_truths(self, truths: Mapping[Predicate, Bits]) -> Rows:
        """Return the same rows with other outcomes; columns that were ranked stay ranked."""
        return Rows({**self.columns, **self.ranked}, truths)

    def followed_by(self, other: Rows) -> Rows:
        """Return these rows, and after them others that hold the same terms and outcomes."""
        columns = {t: pa.chunked_array([*_chunks(a), *_chunks(other.columns[t])]) for t, a in self.columns.items()}
        return Rows(columns, {p: np.concatenate([bits, other.truths[p]]) for p, bits in self.truths.items()})

    def take(self, places: npt.NDArray[np.intp]) -> Rows:
        columns = {t: ranked.take(places) for t, ranked in self.ranked.items()}
        return Rows(columns, {p: bits[places] for p, bits in self.truths.items()})


def _chunks(column: pa.Array | pa.ChunkedArray | RankedColumn) -> list[pa.Array]:
    assert not isinstance(column, RankedColumn), "columns ranked separately cannot be joined"
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
