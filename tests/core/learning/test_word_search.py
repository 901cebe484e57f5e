"""Searches that are evaluated here give what Python's `in` gives, and other conditions are left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.core.learning.word_search import Search, search_of, with_searches, words_in
from hedgerow.core.predicates.nodes import Compare, Opaque, col, lit
from hedgerow.core.pruning.block_stats import F_BIT, N_BIT, T_BIT
from hedgerow.core.pruning.row_batch import Rows

NAME = col("name")


@given(st.lists(st.none() | st.text("abÄß _%", max_size=6), min_size=1), st.text("abÄß", min_size=1, max_size=3))
def test_as_python_says(texts: list[str | None], word: str) -> None:
    condition = Search(NAME, word).condition()
    rows = with_searches(Rows({NAME: pa.array(texts, pa.string())}), [condition])
    if condition in rows.truths:  # a column of NULLs only has no texts
        expected = [N_BIT if text is None else T_BIT if word in text else F_BIT for text in texts]
        assert rows.truths[condition].tolist() == expected
    else:
        assert set(texts) == {None}


@pytest.mark.parametrize(
    "sql", ["name LIKE 'green%'", "name LIKE '%gr_en%'", "name LIKE '%a%b%'", "name NOT LIKE '%a%'", "other LIKE '%a%'"]
)
def test_what_is_left_to_spark(sql: str) -> None:
    condition = Opaque(sql, (NAME,))
    assert search_of(condition) is None
    assert with_searches(Rows({NAME: pa.array(["a green one"])}), [condition]).truths == {}


def test_a_search_is_read_as_it_is_written() -> None:
    search = Search(NAME, "green")
    assert search_of(search.condition()) == search
    assert words_in(search.condition()) == ("green",)
    assert search_of(Compare(NAME, "=", lit("green"))) is None


def test_what_spark_said_is_kept() -> None:
    condition = Search(NAME, "green").condition()
    known = Rows({NAME: pa.array(["green"])}, {condition: pa.array([F_BIT]).to_numpy()})
    assert with_searches(known, [condition]).truths[condition].tolist() == [F_BIT]


def test_numbers_are_not_searched() -> None:
    condition = Search(NAME, "1").condition()
    assert with_searches(Rows({NAME: pa.array([1, 2])}), [condition]).truths == {}
