"""Searches of a text column for a word, such as `name LIKE '%green%'`, evaluated without Spark.

Learning draws other words of a column, and needs their rows without a Spark job for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Bits
from hedgerow.core.predicates.nodes import Column, Feature, Like, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows

WORD = r"[^\W_]+"  # no underscore: LIKE reads it as any character
_PATTERN = re.compile(f"%({WORD})%")


def search_for(term: Term, word: str) -> Like:
    """Return the condition that a text contains the word."""
    return Like(term, f"%{word}%")


def searched_word(p: Predicate) -> str | None:
    """Return the word that the condition searches for; None for any other condition.

    >>> searched_word(Like(Column(("name",)), "%green%"))
    'green'
    """
    match = _PATTERN.fullmatch(p.pattern) if isinstance(p, Like) and isinstance(p.term, Column) else None
    return match and match[1]


class SearchableTexts:
    """The texts of some rows; a search is evaluated once for each different text, not for each row."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._texts: dict[Column, pa.Array | None] = {}

    def outcomes(self, p: Predicate) -> Bits | None:
        """Return the outcome of a search on each row; None if `p` is no search, or the rows have no texts for it."""
        word = searched_word(p)
        if word is None:
            return None
        assert isinstance(p, Like) and isinstance(p.term, Column)
        if p.term not in self._texts:
            self._texts[p.term] = self._texts_of(p.term)
        texts = self._texts[p.term]
        if texts is None:
            return None
        holds = pc.match_substring(texts, word).to_numpy(zero_copy_only=False)
        bits = np.append(np.where(holds, T_BIT, F_BIT), N_BIT).astype(np.uint8)
        on_rows: Bits = bits[self._rows.ranks(p.term).places]  # NULL has place -1, the last
        return on_rows

    def _texts_of(self, column: Column) -> pa.Array | None:
        ranked = self._rows.ranked.items()
        values = next((r.values for term, r in ranked if term_text(term) == term_text(column)), ())
        return pa.array(values, pa.string()) if len(values) and isinstance(values[0], str) else None


def with_searches(rows: Rows, conditions: Iterable[Feature]) -> Rows:
    """Return the rows, with the outcomes of all conditions that are searches."""
    texts, evaluated = SearchableTexts(rows), {predicate_text(p) for p in rows.truths}
    truths = dict(rows.truths)
    for p in (p for p in conditions if isinstance(p, Predicate)):
        bits = None if predicate_text(p) in evaluated else texts.outcomes(p)
        if bits is not None:
            truths[p] = bits
    return rows.with_truths(truths)
