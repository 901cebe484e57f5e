"""A batch of rows, evaluated column by column: each row is an entry of its own to the one evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.core.errors import LayoutError
from hedgerow.core.expr import Column, Predicate, Term, term_text, text
from hedgerow.core.outcomes import outcomes
from hedgerow.core.ranks import Codes, rank_rows, supported
from hedgerow.core.stats import F_BIT, N_BIT, T_BIT, Bits, Feature, Stats, collect
from hedgerow.core.values import Value


@dataclass(frozen=True)
class Rows:
    """Values of terms, and truth bits of predicates that somebody (Spark) has already evaluated."""

    columns: Mapping[Term, pa.Array | pa.ChunkedArray]
    truths: Mapping[Predicate, Bits] = field(default_factory=dict)

    def __len__(self) -> int:
        for known in (*self.columns.values(), *self.truths.values()):
            return len(known)
        return 0

    @staticmethod
    def of_table(table: pa.Table) -> Rows:
        return Rows({Column((name,)): table[name] for name in table.column_names})

    @cached_property
    def _known(self) -> dict[str, Bits]:
        return {text(p): bits for p, bits in self.truths.items()}

    @cached_property
    def _entries(self) -> Stats:
        n = len(self)
        usable = {t: a for t, a in self.columns.items() if supported(a.type)}
        found = collect(usable, None, np.arange(n), n, max_distinct=0)
        return Stats(found.rows, found.terms, {text(p): Feature(p, bits) for p, bits in self.truths.items()})

    def evaluate(self, p: Predicate) -> Bits:
        """The outcome bit of `p` on each row; LayoutError where only Spark could say.

        >>> from hedgerow.core.expr import Compare, col, lit
        >>> Rows({col("x"): pa.array([1, 9, None])}).evaluate(Compare(col("x"), ">", lit(5))).tolist()
        [1, 2, 4]
        """
        known = self._known.get(text(p))
        if known is not None:
            return known
        bits = outcomes(p, self._entries)
        if not np.isin(bits, (F_BIT, T_BIT, N_BIT)).all():
            raise LayoutError(f"the rows do not say whether {text(p)} holds: Spark has to evaluate it with them")
        return bits

    def ranks(self, term: Term) -> tuple[list[Value], Codes]:
        """The distinct values of a term and each row's place among them."""
        for known, array in self.columns.items():
            if term_text(known) == term_text(term):
                return rank_rows(array)
        raise LayoutError(f"the rows have no column for {term_text(term)}")

    def take(self, places: Any) -> Rows:
        index = np.asarray(places)
        columns = {t: a.take(pa.array(index)) for t, a in self.columns.items()}
        return Rows(columns, {p: bits[index] for p, bits in self.truths.items()})
