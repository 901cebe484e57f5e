"""Searches of a text column for a word, such as `name LIKE '%green%'`, evaluated without Spark.

Learning draws other words of a column, and asks on which rows they are, without asking Spark each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Bits
from hedgerow.core.predicates.nodes import Column, Opaque, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, quote_string, term_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows

WORD = r"[^\W_]+"  # an underscore would stand for any character
_LIKE_WORD = re.compile(rf"(?P<column>\S+) LIKE '%(?P<word>{WORD})%'")


class Search(NamedTuple):
    """A column, and the word that is looked for in it."""

    column: Column
    word: str

    def condition(self) -> Opaque:
        return Opaque(f"{term_text(self.column)} LIKE {quote_string(f'%{self.word}%')}", (self.column,))


def search_of(p: Predicate) -> Search | None:
    """The search that a condition is, if it is one."""
    if not (isinstance(p, Opaque) and len(p.columns) == 1):
        return None
    match_ = _LIKE_WORD.fullmatch(p.sql)
    if match_ is None or match_["column"] != term_text(p.columns[0]):
        return None
    return Search(p.columns[0], match_["word"])


def words_in(p: Opaque) -> tuple[str, ...]:
    """The words that a condition looks for, whatever else it asks."""
    return tuple(m["word"] for m in _LIKE_WORD.finditer(p.sql))


class Searched:
    """The texts of some rows. Their searches are evaluated once for each different text, not for each row."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._texts: dict[Column, pa.Array | None] = {}

    def outcomes(self, search: Search) -> Bits | None:
        """The outcome of a search on each row; None if the rows have no texts in this column."""
        if search.column not in self._texts:
            self._texts[search.column] = self._texts_of(search.column)
        texts = self._texts[search.column]
        if texts is None:
            return None
        holds = pc.match_substring(texts, search.word).to_numpy(zero_copy_only=False)
        bits = np.append(np.where(holds, T_BIT, F_BIT), N_BIT).astype(np.uint8)
        found: Bits = bits[self._rows.ranks(search.column).places]  # NULL is place -1, the last
        return found

    def _texts_of(self, column: Column) -> pa.Array | None:
        ranked = self._rows.ranked.items()
        values = next((r.values for known, r in ranked if term_text(known) == term_text(column)), ())
        return pa.array(values, pa.string()) if len(values) and isinstance(values[0], str) else None


def with_searches(rows: Rows, conditions: Iterable[Predicate | Term]) -> Rows:
    """The rows, with the outcomes of those conditions that are searches."""
    searched, known = Searched(rows), {predicate_text(p) for p in rows.truths}
    truths = dict(rows.truths)
    for p in (p for p in conditions if isinstance(p, Predicate)):
        search = None if predicate_text(p) in known else search_of(p)
        bits = None if search is None else searched.outcomes(search)
        if bits is not None:
            truths[p] = bits
    return rows.knowing(truths)
