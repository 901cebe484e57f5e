"""A batch of rows, evaluated column by column: each row is an entry of its own to the one evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.predicates.nodes import Column, Predicate, Term
from hedgerow.core.predicates.sql_text import term_text, text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT, Bits, Feature, Stats, collect, usable
from hedgerow.core.pruning.evaluator import outcomes
from hedgerow.core.pruning.value_codes import Ranked, rank_rows

_ONE_OUTCOME = np.isin(np.arange(8), (F_BIT, T_BIT, N_BIT))


@dataclass(frozen=True)
class Rows:
    """Values of terms, and truth bits of predicates that somebody (Spark) has already evaluated."""

    columns: Mapping[Term, pa.Array | pa.ChunkedArray | Ranked]
    truths: Mapping[Predicate, Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        for known in (*self.columns.values(), *self.truths.values()):
            return len(known.places if isinstance(known, Ranked) else known)
        return 0

    @staticmethod
    def of_table(table: pa.Table) -> Rows:
        return Rows({Column((name,)): table[name] for name in table.column_names})

    @cached_property
    def _known(self) -> dict[str, Bits]:
        return {text(p): bits for p, bits in self.truths.items()}

    @cached_property
    def ranked(self) -> dict[Term, Ranked]:
        """The columns by rank, those of types we do not know left out."""
        return {t: a if isinstance(a, Ranked) else rank_rows(a) for t, a in self.columns.items() if usable(a)}

    @cached_property
    def _entries(self) -> Stats:
        n = len(self)
        found = collect(self.ranked, None, np.arange(n), n, max_distinct=0) if self.ranked else None
        features = {text(p): Feature(p, bits) for p, bits in self.truths.items()}
        return Stats(np.ones(n, np.int64), found.terms if found else {}, features)

    def evaluate(self, p: Predicate) -> Bits:
        """The outcome bit of `p` on each row; LayoutError where only Spark could say.

        >>> from hedgerow.core.predicates.nodes import Compare, col, lit
        >>> Rows({col("x"): pa.array([1, 9, None])}).evaluate(Compare(col("x"), ">", lit(5))).tolist()
        [1, 2, 4]
        """
        known = self._known.get(text(p))
        if known is not None:
            return known
        bits = outcomes(p, self._entries)
        if not _ONE_OUTCOME[bits].all():
            raise LayoutError(f"the rows do not say whether {text(p)} holds: Spark has to evaluate it with them")
        return bits

    def ranks(self, term: Term) -> Ranked:
        """A term's rows by rank."""
        for known, ranked in self.ranked.items():
            if term_text(known) == term_text(term):
                return ranked
        raise LayoutError(f"the rows have no column for {term_text(term)}")

    def distinct(self, term: Term) -> int:
        """How many different values the rows have of a term; 0 for a term they do not have."""
        return next((len(r.values) for known, r in self.ranked.items() if term_text(known) == term_text(term)), 0)

    def stats(self, entry: npt.NDArray[Any], entries: int) -> Stats:
        """Statistics of these rows, divided into entries."""
        return collect(self.ranked, self.truths, entry, entries)

    def take(self, places: npt.NDArray[np.intp]) -> Rows:
        columns = {t: ranked.take(places) for t, ranked in self.ranked.items()}
        return Rows(columns, {p: bits[places] for p, bits in self.truths.items()})
