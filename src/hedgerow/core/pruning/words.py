"""Skips blocks for a search such as `path LIKE '%orders%'` by the words in each block's texts.

The index then needs no outcomes of this condition. A word is a run of ASCII letters and digits with a letter in it. If
a pattern contains a word, a matching text contains it too, inside one of its own words:

    /warehouse/daily_orders/part=17     words: warehouse, daily, orders, part
    path LIKE '%ouse/daily%'            needs a word with `ouse` in it, and one with `daily`
    path LIKE '%17%', '%Ü%'             need none: there are too many numbers, and the set of Unicode letters changes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from hedgerow.core.arrays import Bits
from hedgerow.core.predicates.nodes import Column, Feature, Like, Predicate, atoms_of
from hedgerow.core.predicates.sql_text import term_text
from hedgerow.core.predicates.types import STRING
from hedgerow.core.predicates.values import Value
from hedgerow.core.pruning.block_stats import ANY, MAX_WORDS, T_BIT, Part, Stats

WORD = "[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*"
_WORD = re.compile(WORD)


def words_in_texts(texts: Iterable[Value]) -> frozenset[str] | None:
    """Return the words in these texts; None if there are too many.

    >>> sorted(words_in_texts(["daily_orders/17", "Orders2"]))
    ['Orders2', 'daily', 'orders']
    """
    words: set[str] = set()
    for text in texts:
        words.update(_WORD.findall(text))
        if len(words) > MAX_WORDS:
            return None
    return frozenset(words)


def searched_for_words(items: Iterable[Feature]) -> set[str]:
    """Return the quoted names of the columns that these conditions search for words, with LIKE."""
    atoms = (atom for item in items if isinstance(item, Predicate) for atom in atoms_of(item))
    return {term_text(atom.term) for atom in atoms if isinstance(atom, Like) and _word_parts(atom)}


def _word_parts(p: Like) -> list[str]:
    """Return the parts of words in a pattern; a matching text contains each of them, inside of a word."""
    return _WORD.findall(p.pattern) if isinstance(p.term, Column) else []


def outcomes_by_words(p: Like, stats: Stats, entries: Part) -> Bits:
    """Return the outcomes that a search may have in each of these entries, according to the entry's words."""
    bits = np.full(entries.size, ANY, np.uint8)
    sought = _word_parts(p)
    term_stats = stats.terms.get(term_text(p.term)) if sought else None
    if (
        term_stats is None
        or term_stats.type.kind != STRING
        or term_stats.words is None
        or term_stats.words.sets is None
    ):
        return bits
    for part in sought:
        bits[~term_stats.words.sets.may_hold(_codes_of(part, term_stats.words.values))[entries.at]] &= ANY - T_BIT
    return bits


def _codes_of(part: str, words: Sequence[Value]) -> list[int]:
    return [2 * i + 1 for i, word in enumerate(words) if part in word]
