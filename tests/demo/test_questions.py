"""The questions of the demo: no day, id or amount of a timed query is learned from."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from hedgerow.demo.questions import event_id, to_learn_from, to_time


def new_literals(text: str) -> set[str]:
    """Return the days, the ids, and the amounts that a query compares columns with."""
    return {
        *re.findall(r"DATE '([^']*)'", text),
        *re.findall(r"event_id = '(\w+)'", text),
        *re.findall(r"> (\d\d+)", text),
    }


@pytest.mark.parametrize("rows", [1_000, 60_000, 3_000_000])
def test_no_day_id_or_amount_of_a_timed_query_is_learned_from(rows: int) -> None:
    timed, learned = to_time(rows), to_learn_from(rows)
    assert len(timed) == 12
    assert {question.kind for question in timed} == {question.kind for question in learned}
    known = set().union(*(new_literals(question.text) for question in learned))
    new = set().union(*(new_literals(question.text) for question in timed))
    assert len(new) == 6 and not new & known


def test_ids(spark: SparkSession) -> None:
    text = spark.sql("SELECT substr(md5(CAST(41 AS STRING)), 1, 16)").first()
    assert text is not None and text[0] == event_id(41)
