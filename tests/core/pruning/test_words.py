"""Words in texts close an entry to a search only if no text in it matches, through every change of an index."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.core.index.block_index import BlockIndex
from hedgerow.core.index.index_file import index_bytes, index_of_bytes
from hedgerow.core.predicates.nodes import And, Expr, Like, Not, Opaque, Or, Predicate, col
from hedgerow.core.predicates.types import STRING, Type
from hedgerow.core.pruning.block_stats import MAX_WORDS, Stats, TermStats, collect
from hedgerow.core.pruning.combine_stats import agree, concat, regroup, repeat
from hedgerow.core.pruning.evaluator import may_match, must_match
from hedgerow.core.pruning.words import searched_for_words, words_in_texts

LETTERS = "aAbB1 _/%üK\n"
Texts = list[list[str | None] | None]  # by entry; None: nobody knows its words

a_text = st.text(LETTERS, max_size=6)
an_entry = st.lists(st.one_of(st.none(), a_text), max_size=4)


def stats_of(texts: Texts, known: list[bool]) -> Stats:
    """The statistics of entries with these texts; of some, the words are unknown."""
    column = pa.array([text for own in texts for text in own or ()], pa.string())
    entry = [i for i, own in enumerate(texts) for _ in own or ()]
    stats = collect({col("s"): column}, None, entry, len(texts), max_distinct=0)
    sets = [words_in_texts(t for t in own or () if t) if k else None for own, k in zip(texts, known, strict=True)]
    words = TermStats.of_sets(Type(STRING), sets)
    return Stats(stats.rows, {"s": TermStats(**{**vars(stats.terms["s"]), "words": words})}, {})


def like(pattern: str) -> Like:
    return Like(col("s"), pattern)


def matches(pattern: str, text: str | None) -> bool:
    """LIKE, slowly."""
    parts = {"%": ".*", "_": "."}
    regex = "".join(parts.get(c, re.escape(c)) for c in pattern)
    return text is not None and re.fullmatch(regex, text, re.DOTALL) is not None


@settings(max_examples=400)
@given(st.lists(an_entry, min_size=1, max_size=4), st.lists(an_entry, max_size=3), st.data())
def test_an_entry_with_a_match_is_never_closed(first: Texts, second: Texts, data: st.DataObject) -> None:
    pattern = data.draw(a_text)
    texts = [*first, *second]
    known = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    stats = concat([stats_of(first, known[: len(first)]), stats_of(second, known[len(first) :])])
    owner = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=5))
    stats, texts = repeat(stats, np.array(owner)), [texts[i] for i in owner]
    to = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    stats = regroup(stats, to, 3)
    joined: Texts = [[t for own, k in zip(texts, to, strict=True) if k == i for t in own or ()] for i in range(3)]
    stats = index_of_bytes(index_bytes(BlockIndex(stats))).blocks
    some = [any(matches(pattern, t) for t in own or ()) for own in joined]
    every = [all(matches(pattern, t) for t in own or ()) for own in joined]
    assert (may_match(like(pattern), stats) | ~np.array(some)).all()
    assert (may_match(Or((like(pattern), like("%b%"))), stats) | ~np.array(some)).all()
    assert (may_match(Not(like(pattern)), stats) | np.array(every) | has_null(joined)).all()
    assert (~must_match(like(pattern), stats) | np.array(every)).all()


def has_null(texts: Texts) -> np.ndarray:
    return np.array([any(t is None for t in own or ()) for own in texts])


def test_words_close_entries_to_searches_that_nobody_ran() -> None:
    stats = stats_of([["/ware/daily_orders/17"], ["/ware/users", None], ["x" * 3]], [True, True, False])
    asked: dict[str, list[bool]] = {
        "%orders%": [True, False, True],
        "%ware/d%": [True, False, True],
        "%ware%users%": [False, True, True],
        "%ORDERS%": [False, False, True],
        "%17%": [True, True, True],  # numbers are not kept
    }
    for pattern, opened in asked.items():
        assert may_match(like(pattern), stats).tolist() == opened, pattern
    both = And((like("%ware%"), like("%user%")))
    assert may_match(both, stats).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "other",
    [
        Opaque("s ILIKE '%daily%'", (col("s"),)),  # Unicode has other letters that are k or s in lower case
        Opaque("s LIKE '%daily%' ESCAPE 'a'", (col("s"),)),
        Like(Expr("lower(s)", (col("s"),)), "%daily%"),
        Opaque("s RLIKE 'daily'", (col("s"),)),
        Like(col("t"), "%daily%"),
        Opaque("s LIKE '%daily%' OR s LIKE 'x'", (col("s"),)),
    ],
)
def test_other_conditions_are_not_judged_by_words(other: Predicate) -> None:
    assert may_match(other, stats_of([["orders"]], [True])).all()


def test_many_words_are_not_kept() -> None:
    assert words_in_texts(f"w{i}" for i in range(MAX_WORDS + 1)) is None
    assert len(words_in_texts(f"w{i}" for i in range(MAX_WORDS)) or ()) == MAX_WORDS


def test_words_are_compared_where_both_sides_know_them() -> None:
    stored, other = stats_of([["ab"], ["b"]], [True, True]), stats_of([["ab"], ["ba"]], [True, True])
    other = Stats(other.rows, {"s": TermStats(**{**vars(stored.terms["s"]), "words": other.terms["s"].words})}, {})
    unknown = Stats(other.rows, {"s": TermStats(**{**vars(stored.terms["s"]), "words": None})}, {})
    assert agree(stored, other).tolist() == [True, False]
    assert agree(stored, unknown).all()


def test_searched_columns() -> None:
    a, b = col("a"), col("b")
    asked = [Or((Like(a, "%x%"), Like(b, "%1%"))), Opaque("b RLIKE 'x'", (b,)), a]
    assert searched_for_words(asked) == {"a"}
