"""Searches that are evaluated here give what Python's `in` gives, and other conditions are left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.word_search import search_for, searched_word, with_searches
from hedgerow.core.predicates.nodes import Compare, Like, Opaque, Predicate, col, lit
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows

NAME = col("name")


@given(st.lists(st.none() | st.text("abÄß _%", max_size=6), min_size=1), st.text("abÄß", min_size=1, max_size=3))
def test_as_python_says(texts: list[str | None], word: str) -> None:
    condition = search_for(NAME, word)
    rows = with_searches(Rows({NAME: pa.array(texts, pa.string())}), [condition])
    if condition in rows.truths:  # a column of NULLs only has no texts
        expected = [N_BIT if text is None else T_BIT if word in text else F_BIT for text in texts]
        assert rows.truths[condition].tolist() == expected
    else:
        assert set(texts) == {None}


@pytest.mark.parametrize(
    "condition",
    [Like(NAME, "green%"), Like(NAME, "%gr_en%"), Like(NAME, "%a%b%"), Opaque("name ILIKE '%a%'", (NAME,))],
    ids=str,
)
def test_other_patterns_are_left_to_spark(condition: Predicate) -> None:
    assert searched_word(condition) is None
    assert with_searches(Rows({NAME: pa.array(["a green one"])}), [condition]).truths == {}


def test_a_search_is_read_as_it_is_written() -> None:
    assert searched_word(search_for(NAME, "green")) == "green"
    assert searched_word(Compare(NAME, "=", lit("green"))) is None


def test_what_spark_said_is_kept() -> None:
    condition = search_for(NAME, "green")
    known = Rows({NAME: pa.array(["green"])}, {condition: pa.array([F_BIT]).to_numpy()})
    assert with_searches(known, [condition]).truths[condition].tolist() == [F_BIT]


def test_numbers_are_not_searched() -> None:
    condition = search_for(NAME, "1")
    assert with_searches(Rows({NAME: pa.array([1, 2])}), [condition]).truths == {}
