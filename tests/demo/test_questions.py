"""The questions of the demo: what is learned from says nothing of what is timed."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from hedgerow.demo.questions import event_id, to_learn_from, to_time

# Constants of the questions, which are part of their kind.
_FIXED = {"campaign", "device", "0"}


def literals(text: str) -> set[str]:
    """Return the values that columns are compared with."""
    return {*re.findall(r"'([^']*)'", text), *re.findall(r">=? (\d+)", text)}


@pytest.mark.parametrize("rows", [1_000, 60_000, 3_000_000])
def test_no_literal_of_a_timed_query_is_learned_from(rows: int) -> None:
    timed, learned = to_time(rows), to_learn_from(rows)
    assert len(timed) == 12
    assert {question.kind for question in timed} == {question.kind for question in learned}
    known = set().union(*(literals(question.text) for question in learned))
    for question in timed:
        assert not (literals(question.text) - _FIXED) & known, question


def test_ids(spark: SparkSession) -> None:
    text = spark.sql("SELECT substr(md5(CAST(41 AS STRING)), 1, 16)").first()
    assert text is not None and text[0] == event_id(41)
