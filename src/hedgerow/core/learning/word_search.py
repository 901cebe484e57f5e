"""Searches of a text column for a word, such as `name LIKE '%green%'`, evaluated without Spark.

Learning draws other words of a column, and asks on which rows they are, without asking Spark each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.core.arrays import Bits
from hedgerow.core.predicates.nodes import Column, Like, Predicate, Term
from hedgerow.core.predicates.sql_text import predicate_text, term_text
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows

WORD = r"[^\W_]+"  # an underscore would stand for any character
_PATTERN = re.compile(f"%({WORD})%")


def search_for(term: Term, word: str) -> Like:
    """Return the condition that a text has the word in it."""
    return Like(term, f"%{word}%")


def searched_word(p: Predicate) -> str | None:
    """Return the word that the condition looks for; None if it asks for anything else.

    >>> searched_word(Like(Column(("name",)), "%green%"))
    'green'
    """
    found = _PATTERN.fullmatch(p.pattern) if isinstance(p, Like) and isinstance(p.term, Column) else None
    return found and found[1]


class Searched:
    """The texts of some rows. Their searches are evaluated once for each different text, not for each row."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._texts: dict[Column, pa.Array | None] = {}

    def outcomes(self, p: Predicate) -> Bits | None:
        """Return the outcome of a search on each row; None if it is none, or the rows have no texts in its column."""
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
        found: Bits = bits[self._rows.ranks(p.term).places]  # NULL is place -1, the last
        return found

    def _texts_of(self, column: Column) -> pa.Array | None:
        ranked = self._rows.ranked.items()
        values = next((r.values for known, r in ranked if term_text(known) == term_text(column)), ())
        return pa.array(values, pa.string()) if len(values) and isinstance(values[0], str) else None


def with_searches(rows: Rows, conditions: Iterable[Predicate | Term]) -> Rows:
    """Return the rows, with the outcomes of those conditions that are searches."""
    searched, known = Searched(rows), {predicate_text(p) for p in rows.truths}
    truths = dict(rows.truths)
    for p in (p for p in conditions if isinstance(p, Predicate)):
        bits = None if predicate_text(p) in known else searched.outcomes(p)
        if bits is not None:
            truths[p] = bits
    return rows.with_truths(truths)
